"""What to do about a check that didn't pass, in words of ours alone: backticks in it are marks. Pure."""

from __future__ import annotations

from sqlrun.events import CheckResult
from sqlrun.outcome import Outcome
from sqlrun.project import INFO

# Types of checks that compare a tick with the past.
COMPARED = frozenset({"volume", "quarantined", "lateness", "null_share"})
WAITING = (
    "`sqlrun quarantine list` says why lines were set aside. If a rule is wrong: mend it, and `sqlrun "
    "quarantine replay` its lines. If the lines are wrong: `sqlrun quarantine discard` them."
)


def advice(check: CheckResult) -> str:
    """Return what to do about a check, by what came of it."""
    match check.status:
        case Outcome.PASS:
            return ""
        case Outcome.FAIL:
            return _failed(check)
        case Outcome.WARN:
            return _warned(check)
        case Outcome.INFO:
            return _noted(check)
        case Outcome.ERROR:
            return "Mend the check at its place below, then run `sqlrun build` again."
        case Outcome.UNJUDGED:
            return "Nothing has to be done: it is evaluated as soon as there is something to compare with."
        case Outcome.UNMEASURED:
            return "The message says why. The past was not looked at in this tick, which is published all the same."


def _failed(check: CheckResult) -> str:
    if check.type == "freshness":
        return (
            "Have the source send again: the next build that finds a new event is published. If it may be silent for "
            "so long: write a longer `error_after` at the place below, or `warn_after` alone."
        )
    if check.type == "max_quarantined":
        return f"{WAITING} Then run `sqlrun build` again."
    return (
        "If the rows are wrong: have the source send them right, or mend the model's query. If the rule is wrong: "
        f"change it at its place below.{_milder(check)} Then run `sqlrun build` again; there is nothing to clean up."
    )


def _milder(check: CheckResult) -> str:
    """Return how such rows would pass and be told, in the words of the file in which the rule stands."""
    such = " If such rows should pass and be told: write"
    if not in_contract(check):
        return f"{such} `on_fail: warn` there."
    if "unique" in check.type:
        return ""  # the grain's, which is never a warning
    if "not_be_null" in check.type:
        return f"{such} `data_tests: [{{not_null: {{config: {{severity: warn}}}}}}]` there, and no `nulls: false`."
    return f"{such} `config: {{severity: warn}}` there, of a data test."


def _warned(check: CheckResult) -> str:
    if check.type in COMPARED:
        return (
            "It is compared with the past; nobody wrote a rule. Look whether the source sends what it should. What is "
            "so from now on becomes usual after weeks; `anomalies: false` in the model's `config` ends the comparing."
        )
    if check.type == "freshness":
        return (
            "Look whether the source still sends. If it matters so much that readers should see nothing: `error_after`."
        )
    if check.type == "max_quarantined":
        return WAITING
    if check.type == "repeats":
        return (
            "Have the source send copies alone. If rows of one key may differ: take `repeats: true` out of the "
            "contract, or name in `grain` what tells them apart."
        )
    stricter = "`severity: error`" if in_contract(check) else "`on_fail: fail`"
    return f"If it matters so much that readers should not see such rows: write {stricter} at the rule's place below."


def _noted(check: CheckResult) -> str:
    if check.severity == INFO:
        return "Nothing has to be done. If it should be a warning: write `severity: warning` at the rule's place below."
    return "Nothing has to be done."


def in_contract(check: CheckResult) -> bool:
    """Return whether a rule stands in a model's contract, whose words are dbt's, and not among the expectations."""
    return check.place.file.startswith("models/")
