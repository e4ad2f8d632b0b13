"""The report of a tick as one HTML page that loads nothing from anywhere. Pure."""

from __future__ import annotations

import functools
import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlrun.events import CheckResult, NodeResult, Status, TickResult
from sqlrun.outcome import WORST_FIRST, Level, Outcome
from sqlrun.project import SEVERITIES
from sqlrun.report import findings, measure_labels
from sqlrun.report.findings import About, Finding, clean
from sqlrun.report.log_lines import subject
from sqlrun.report.sparklines import bars, strip
from sqlrun.runtime.text_table import counted
from sqlrun.version import __version__

# So many failures are shown open; an overview above them lists as many, and the rest stays folded.
OPEN = 20
OVERVIEW = 8
# So many models with checks that didn't pass are linked above the tables of checks.
INDEX = 60
EVALUATORS = {"arrow": "by Arrow", "duckdb": "by DuckDB", "great_expectations": "by Great Expectations"}
# What became of a step.
WORDS: dict[Status, str] = {
    "success": "up to date", "error": "failed", "skipped": "skipped", "no-op": "nothing to do",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A step in the table of models. `amplification`: rows read for each that came, left or was written."""

    name: str
    kind: str
    status: str
    word: str
    changed: str
    read: str
    amplification: str
    seconds: str
    note: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check in the table of its model."""

    where: str
    type: str
    severity: str
    status: str
    css: str
    word: str
    amount: str
    seconds: str
    place: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The checks of one model: those to look at, and those that passed."""

    model: str
    summary: str
    open: tuple[CheckRow, ...]
    folded: tuple[CheckRow, ...]
    passed: tuple[CheckRow, ...]


def html(template: str, result: TickResult, about: About, script: str = "") -> str:
    """Fill the page's template; every text is escaped for HTML by it.

    `script` lets readers choose which checks to see. The page's policy names it by its hash, so that nothing else runs.
    """
    failed, warned = findings.failures(result, about), findings.warnings(result, about)
    blocking = {check.model for check in result.checks if check.status.blocks}
    groups = [_group(model, checks) for model, checks in findings.by_model(result.checks).items()]
    text: str = compiled(template).render(
        headline=findings.headline(result, about),
        status=(Level.BLOCKS if not result.published else Level.WARNING if warned else Level.GOOD).css,
        facts=facts(result, about),
        project=clean(about.project),
        failures=_parted(failed),
        warnings=_parted(warned),
        notes=_parted(findings.notes(result, about)),
        quarantined=findings.quarantined(result.nodes),
        published=result.published,
        options=clean(about.options),
        models=[_model_row(node, result.published, blocking) for node in result.nodes],
        groups=groups,
        index=[(place, group) for place, group in enumerate(groups, 1) if group.open][:INDEX],
        measured=measure_labels.of_tick(result.measures),
        script=script,
        digest=digest(script),
        choices=_choices(result.checks),
        version=__version__,
        strip=strip,
        bars=bars,
        failed=Outcome.FAIL.rank,
    )
    return text


@functools.lru_cache(4)
@functools.cache
def compiled(template: str) -> Any:
    """Return a page's template, compiled once in a process (27 ms); what it is filled with is escaped for HTML."""
    return _environment().from_string(template)


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def digest(script: str) -> str:
    """Return the name of a script by its hash, as a page's policy does."""
    return "sha256-" + b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _choices(checks: Sequence[CheckResult]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """List what checks can be chosen by: an attribute, its word, and the values that there are, with theirs."""
    severities = {check.severity for check in checks}
    found = {check.status.as_stored for check in checks}
    return [
        ("severity", "Severity", [(each, each) for each in SEVERITIES if each in severities]),
        ("model", "Model", [(name, name) for name in sorted({clean(check.model) for check in checks})]),
        (
            "outcome",
            "Outcome",
            [(one.stored, one.words.tag) for one in WORST_FIRST if one in found],
        ),
    ]


def facts(result: TickResult, about: About) -> list[tuple[str, str]]:
    """List what the tick was: its time, engine, profile, environment, how long it took."""
    return [
        ("As of", f"{result.as_of:%Y-%m-%d %H:%M} UTC"),
        ("Project", clean(about.project)),
        ("Environment", clean(about.env) or "production"),
        ("Engine", clean(about.engine)),
        ("Profile", clean(about.profile)),
        ("Took", f"{result.seconds:,.1f} s"),
        ("Written", f"{about.at:%Y-%m-%d %H:%M} UTC"),
    ]


def _parted(found: Sequence[Finding]) -> dict[str, object]:
    """Number the findings; list the first ones above where there are many, fold the last ones."""
    numbered = list(enumerate(found, 1))
    few = len(found) < 3
    return {
        "count": len(found),
        "overview": [] if few else numbered[:OVERVIEW],
        "unlisted": 0 if few else max(0, len(found) - OVERVIEW),
        "by_model": [] if len(found) <= OVERVIEW else Counter(f.model or f.where for f in found).most_common(OVERVIEW),
        "open": numbered[:OPEN],
        "folded": numbered[OPEN:],
    }


def _model_row(node: NodeResult, published: bool, blocking: set[str]) -> ModelRow:
    status, word = node.status, WORDS[node.status]
    if status == "success" and not published:
        # Readers don't see it, so it isn't good, whatever was done.
        status, word = ("error", "checks failed") if node.name in blocking else ("no-op", "done, not published")
    receipts = [stage.receipt for stage in node.stages]
    read = _sum(receipt.rows_read for receipt in receipts)
    moved = sum(stage.rows_in + (stage.receipt.rows_written or 0) for stage in node.stages)
    notes = [stage.note for stage in node.stages if stage.note]
    if node.quarantined:
        notes.insert(0, f"{counted(node.quarantined, 'line')} quarantined")
    return ModelRow(
        name=clean(node.name),
        kind=clean(node.kind),
        status=status,
        word=word,
        changed=f"{node.rows:,}" if node.status in ("success", "no-op") else "–",
        read="–" if read is None else f"{read:,}",
        amplification="–" if not read or not moved else f"{read / moved:,.1f}",
        seconds=f"{node.seconds:,.2f}",
        note=clean("; ".join(notes), findings.LONGEST_SAMPLE),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _group(model: str, checks: Sequence[CheckResult]) -> Group:
    tally = Counter(check.status.as_stored for check in checks)
    parts = [one.amount(tally[one]) for one in WORST_FIRST if tally[one]]
    told = [_check_row(check) for check in checks if check.status is not Outcome.PASS]
    passed = tuple(_check_row(check) for check in checks if check.status is Outcome.PASS)
    return Group(clean(model), ", ".join(parts), tuple(told[:OPEN]), tuple(told[OPEN:]), passed)


def _check_row(check: CheckResult) -> CheckRow:
    outcome = check.status
    amount = findings.amount(check) if outcome.evaluated else ""
    if not amount and check.evaluated and outcome.evaluated:
        amount = counted(check.evaluated, "row") + " looked at"
    place, seconds = clean(str(check.place)), f"{check.seconds:,.2f}"
    by = EVALUATORS.get(check.evaluator, "")
    return CheckRow(
        where=clean(subject(check)),
        type=clean(check.type),
        severity=clean(check.severity),
        status=outcome.stored,
        css=outcome.css,
        word=outcome.words.tag,
        amount=amount,
        seconds=seconds,
        place=place,
        by=by,
    )
