"""Advice for a check that did not pass. Backticks mark code; no text of the project is in it. Pure."""

from __future__ import annotations

from sqlrun.events import CheckResult
from sqlrun.outcome import Outcome
from sqlrun.project import INFO

# Types of checks that compare a tick with the past.
COMPARED = frozenset({"volume", "quarantined", "lateness", "null_share"})
QUARANTINED = (
    "`sqlrun quarantine list` shows why lines were quarantined. If a rule is wrong, fix it and run `sqlrun quarantine "
    "replay`. If the lines are wrong, run `sqlrun quarantine discard`."
)


def advice(check: CheckResult) -> str:
    """Return the advice for a check, by its outcome; "" for a check that passed."""
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
            return "Fix the check at the place below, then run `sqlrun build` again."
        case Outcome.UNJUDGED:
            return "Nothing: the check runs as soon as there is a past to compare with."
        case Outcome.UNMEASURED:
            return "The message says why. This tick was not compared with the past; it is published anyway."


def _failed(check: CheckResult) -> str:
    if check.type == "freshness":
        return (
            "Make the source send again: the next build that finds a new event publishes. If the source may be silent "
            "for that long, set a longer `error_after` at the place below, or only `warn_after`."
        )
    if check.type == "max_quarantined":
        return f"{QUARANTINED} Then run `sqlrun build` again."
    return (
        "If the rows are wrong, correct them in the source or fix the model's query. If the rule is wrong, change it "
        f"at the place below.{_milder(check)} Then run `sqlrun build` again; there is nothing to clean up."
    )


def _milder(check: CheckResult) -> str:
    """Return how to publish such rows with a warning, in the syntax of the file that declares the rule."""
    such = " To publish such rows with a warning, set"
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
            "sqlrun compares this number with its past; the project has no rule for it. Check the source. A "
            "lasting change counts as usual after some weeks. To stop comparing, set `anomalies: false` in the model's "
            "`config`."
        )
    if check.type == "freshness":
        return "Check whether the source still sends. If readers must not see data this old, set `error_after`."
    if check.type == "max_quarantined":
        return QUARANTINED
    if check.type == "repeats":
        return (
            "Make the source repeat rows unchanged. If rows of one key may differ, remove `repeats: true` from the "
            "contract, or add the columns that distinguish them to `grain`."
        )
    stricter = "`severity: error`" if in_contract(check) else "`on_fail: fail`"
    return f"If readers must not see such rows, set {stricter} at the rule's place below."


def _noted(check: CheckResult) -> str:
    if check.severity == INFO:
        return "Nothing. To make it a warning, set `severity: warning` at the rule's place below."
    return "Nothing."


def in_contract(check: CheckResult) -> bool:
    """Return whether a model's contract declares the rule, in dbt's syntax, rather than an expectation suite."""
    return check.place.file.startswith("models/")
