"""`python -m tests.crash.alternating SEED POINT ARGUMENTS`: `sqlrun` with `engine: auto`, each table's engine drawn.

It dies with its JVM when it gets to the point; "" for none.
"""

from __future__ import annotations

import sys

from sqlrun.cli.main import main
from tests.crash import points
from tests.support.alternating import at_random

if __name__ == "__main__":
    if sys.argv[2]:
        points.strike(sys.argv[2], "SIGKILL", group=True)
    with at_random(sys.argv[1]):
        main(sys.argv[3:], "sqlrun")
