"""`python -m tests.crash.struck POINT ARGUMENTS`: `sqlrun` that dies with its JVM when it gets to a point."""

from __future__ import annotations

import sys

from sqlrun.cli.main import main
from tests.crash import points

if __name__ == "__main__":
    points.strike(sys.argv[1], "SIGKILL", group=True)
    main(sys.argv[2:], "sqlrun")
