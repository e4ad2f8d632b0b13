"""The report of a tick as one self-contained HTML page. Pure."""

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
from sqlrun.source_api import NUMBERS
from sqlrun.version import __version__

# Number of findings shown open; the rest is folded. Number of findings in the overview above them.
OPEN = 20
OVERVIEW = 8
# Maximum number of models that are linked above the tables of checks.
INDEX = 60
# Maximum number of listed losses of a source.
LOSSES = 20
EVALUATORS = {"arrow": "by Arrow", "duckdb": "by DuckDB", "great_expectations": "by Great Expectations"}
# Labels of a step's status.
WORDS: dict[Status, str] = {
    "success": "up to date", "error": "failed", "skipped": "skipped", "no-op": "nothing to do",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A row in the table of models. `amplification`: rows read per row that was inserted, deleted or written."""

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
class LinesRow:
    """A row in the table of landed lines: the numbers in the order of `NUMBERS`, and the accepted losses."""

    model: str
    source: str
    numbers: tuple[str, ...]
    arithmetic: str
    is_wrong: bool
    losses: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A row in a model's table of checks."""

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
    """The checks of one model. `open` and then `folded` are the checks that did not pass."""

    model: str
    summary: str
    open: tuple[CheckRow, ...]
    folded: tuple[CheckRow, ...]
    passed: tuple[CheckRow, ...]


def html(template: str, result: TickResult, about: About, script: str = "") -> str:
    """Return the page. The template escapes every text for HTML.

    `script` is the filter of checks. The page's content security policy allows it by hash, so nothing else runs.
    """
    failed, warned = findings.failures(result, about), findings.warnings(result, about)
    blocking = {check.model for check in result.checks if check.status.blocks}
    groups = [_group(model, checks) for model, checks in findings.by_model(result.checks).items()]
    text: str = compiled(template).render(
        headline=findings.headline(result, about),
        status=(Level.BLOCKS if not result.published else Level.WARNING if warned else Level.GOOD).css,
        facts=facts(result, about),
        project=clean(about.project),
        failures=_sections(failed),
        warnings=_sections(warned),
        notes=_sections(findings.notes(result, about)),
        quarantined=findings.quarantined(result.nodes),
        landed=_landed(result),
        numbers=NUMBERS,
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
    """Return a page's template, compiled once per process (27 ms); it escapes all values for HTML."""
    return _environment().from_string(template)


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def digest(script: str) -> str:
    """Return a script's hash as a content security policy names it."""
    return "sha256-" + b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _choices(checks: Sequence[CheckResult]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the filters: attribute, label, and the values in use with their labels."""
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
    """Return the facts of the tick: time, whole transactions, project, engine, profile, duration and its requests."""
    landed = {stage.complete for node in result.nodes for stage in node.stages if stage.complete is not None}
    return [
        ("As of", f"{result.as_of:%Y-%m-%d %H:%M} UTC"),
        *(("Complete to", clean(text)) for text in sorted(map(str, landed))),
        ("Project", clean(about.project)),
        ("Environment", clean(about.env) or "production"),
        *([("Sample", clean(about.sample))] if about.sample else []),
        ("Engine", clean(about.engine)),
        ("Profile", clean(about.profile)),
        ("Took", f"{result.seconds:,.1f} s"),
        *([] if result.requests is None else [("Requests to the store", f"{result.requests:,}")]),
        ("Written", f"{about.at:%Y-%m-%d %H:%M} UTC"),
    ]


def _sections(found: Sequence[Finding]) -> dict[str, object]:
    """Return the findings numbered: an overview of the first ones if there are many, open ones, folded ones."""
    numbered = list(enumerate(found, 1))
    few = len(found) < 3
    by_model = Counter(f.model or f.where for f in found).most_common(OVERVIEW)
    return {
        "count": len(found),
        "overview": [] if few else numbered[:OVERVIEW],
        "unlisted": 0 if few else max(0, len(found) - OVERVIEW),
        "by_model": [each for each in by_model if each[1] > 1],
        "open": numbered[:OPEN],
        "folded": numbered[OPEN:],
    }


def _model_row(node: NodeResult, published: bool, blocking: set[str]) -> ModelRow:
    status, word = node.status, WORDS[node.status]
    if status == "success" and not published:
        # Readers don't see it, so it isn't a success.
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


def _landed(result: TickResult) -> list[LinesRow]:
    """Return what became of the lines of each source since the published tick; nothing of sources without a line."""
    sources = {measure.subject: measure.source for measure in result.measures if measure.source}
    found = []
    for node in result.nodes:
        lines = node.lines
        if lines.is_nothing:
            continue
        losses = [f"{one.part}: {one.what} Accepted by {one.by}, {one.at}." for one in lines.losses[:LOSSES]]
        found.append(
            LinesRow(
                model=clean(node.name),
                source=clean(sources.get(node.name) or ""),
                numbers=tuple("–" if number is None else f"{number:,}" for number in lines.numbers.values()),
                arithmetic=lines.arithmetic(),
                is_wrong=bool(lines.losses or lines.lost or lines.unexplained),
                losses=tuple(clean(text, findings.LONGEST_SAMPLE) for text in losses),
                more=max(0, len(lines.losses) - LOSSES),
            )
        )
    return found


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _group(model: str, checks: Sequence[CheckResult]) -> Group:
    tally = Counter(check.status.as_stored for check in checks)
    parts = [one.amount(tally[one]) for one in WORST_FIRST if tally[one]]
    listed = [_check_row(check) for check in checks if check.status is not Outcome.PASS]
    passed = tuple(_check_row(check) for check in checks if check.status is Outcome.PASS)
    return Group(clean(model), ", ".join(parts), tuple(listed[:OPEN]), tuple(listed[OPEN:]), passed)


def _check_row(check: CheckResult) -> CheckRow:
    outcome = check.status
    amount = findings.amount(check) if outcome.evaluated else ""
    if not amount and check.evaluated and outcome.evaluated:
        amount = counted(check.evaluated, "row") + " checked"
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
