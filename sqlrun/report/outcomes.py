"""What can come of a check: a closed set of outcomes, and what each is called wherever it is shown. Pure.

Whoever shows a check asks here, so that no two places say different things of it, and none forgets one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlrun.events import CheckResult, CheckStatus

# `unjudged`: there is nothing yet that it could be held to. `unmeasured`: a measure is missing; no tick waits for one.
Outcome = Literal["passed", "failed", "warned", "noted", "erred", "unjudged", "unmeasured"]
Level = Literal["good", "note", "warning", "blocks"]
# The type of what tells that a measure is missing.
MEASURES = "measures"
NEVER_PASS = "It could not be evaluated, which is never a pass"


@dataclass(frozen=True, slots=True)
class Words:
    """What an outcome is called: on a line, as a tag, above its details, by dbt. `evaluated`: rows were judged."""

    line: str
    tag: str
    detail: str
    level: Level
    dbt: str
    evaluated: bool = True


def of(status: CheckStatus, kind: str) -> Outcome:
    """Tell the outcome of a check of some type by its status."""
    match status:
        case "pass":
            return "passed"
        case "fail":
            return "failed"
        case "warn":
            return "unmeasured" if kind == MEASURES else "warned"
        case "info":
            return "noted"
        case "error":
            return "erred"
        case "unjudged":
            return "unjudged"


def words(outcome: Outcome) -> Words:
    """Give what an outcome is called."""
    match outcome:
        case "passed":
            return Words("PASS", "passed", "", "good", "pass")
        case "failed":
            return Words("FAIL", "failed", "Failure in", "blocks", "fail")
        case "warned":
            return Words("WARN", "warning", "Warning in", "warning", "warn")
        case "noted":
            return Words("INFO", "note", "Note of", "note", "warn")
        case "erred":
            return Words("ERROR", "not evaluated", "Error in", "blocks", "error", evaluated=False)
        case "unjudged":
            return Words("INFO", "not yet evaluated", "Note of", "note", "skipped", evaluated=False)
        case "unmeasured":
            return Words("WARN", "not measured", "Warning in", "warning", "warn", evaluated=False)


def of_check(check: CheckResult) -> Words:
    """Give what a check's outcome is called."""
    return words(of(check.status, check.type))


def title(outcome: Outcome, amount: str) -> tuple[str, str]:
    """Write a headline around the name of what was looked at; `amount` says in how many rows it isn't as expected.

    >>> "orders".join(title("failed", "3 of 9 rows")), "orders".join(title("unjudged", ""))
    ('orders: 3 of 9 rows not as expected', 'orders: not evaluated yet')
    """
    match outcome:
        case "passed":
            return "", ": as expected"
        case "failed" | "warned" | "noted":
            return "", f": {amount} not as expected" if amount else ": not as expected"
        case "erred":
            return "The check of ", " could not be evaluated, which is never a pass"
        case "unjudged":
            return "", ": not evaluated yet"
        case "unmeasured":
            return "", ": not measured"


def said(check: CheckResult, amount: str) -> str:
    """Say in one sentence what came of a check, without its headline; its own message where no rows were judged."""
    match of(check.status, check.type):
        case "failed" | "warned" | "noted" | "passed":
            return f"{amount} not as expected" if amount else check.message
        case "erred":
            return f"{NEVER_PASS}: {check.message}"
        case "unjudged" | "unmeasured":
            return check.message
