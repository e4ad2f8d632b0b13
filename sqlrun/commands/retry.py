"""The command retry: the last build again. Shell: target/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlrun.errors import UsageError
from sqlrun.report.run_results_file import ASKED, NAME

# Options of a build that a retry repeats. Consent to a loss counts for one build.
REPEATED = (
    "select",
    "exclude",
    "state",
    "vars",
    "profile",
    "env",
    "sample",
    "defer",
    "full_refresh",
    "threads",
    "skip_tests",
    "fail_fast",
    "wait",
    "log_format",
)


def last_build(root: Path) -> dict[str, Any] | None:
    """Return the options of the last build, as its results have them; None if its tick was published.

    A build that was killed has results, too: they are written from its start.

    Raises: UsageError if there are no results of a build.
    """
    file = root / "target" / NAME
    try:
        args = json.loads(file.read_text(encoding="utf-8"))["args"]
        if args["which"] != "build":
            raise ValueError(args["which"])
    except OSError:
        raise UsageError(f"there is nothing to retry: no build has written target/{NAME}. Run `sqlrun build`") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"target/{NAME} isn't that of a build of sqlrun. Run `sqlrun build`") from None
    published = args.get("published")
    if published:
        return None
    found = {name: args[name] for name in REPEATED if name in args}
    for name in ("select", "exclude"):
        if name in found:
            found[name] = tuple(found[name])
    if "state" in found:
        found["state"] = Path(found["state"])
    as_of = args.get("as_of") if published is None else args.get(ASKED)
    return found | ({"as_of": as_of} if as_of else {})
