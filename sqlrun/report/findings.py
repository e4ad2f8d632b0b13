"""What went wrong in a tick, where, in how many rows and what to do, as clean text for reports of any form. Pure.

Values of rows, names and messages come from outside: here they are cut and lose what a reader's screen would obey. What
a form's own marks are (`<`, `|`) is for the form to escape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from sqlrun.events import CheckResult, NodeResult, TickResult
from sqlrun.outcome import BLOCKING, Level, Outcome
from sqlrun.project import Value
from sqlrun.report.log_lines import subject
from sqlrun.report.remedies import advice
from sqlrun.runtime.text_table import counted, escaped

# A check's outcome; a step that failed; the end of the build before its end.
Kind = Outcome | Literal["broken", "stopped"]
# Samples and messages of what comes first get all the room that they need, those of the rest an equal part of what is
# left, so that no number of them makes a file too big.
FIRST, MOST = 20, 4_000
ROOM, LEAST = 70_000, 150
LONGEST_NAME, LONGEST_SAMPLE, LONGEST_MESSAGE = 120, 400, 2_000
SAMPLES = 20
LINES = 30
# XML has no word for these two, and no screen shows them.
NO_CHARACTERS = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a check that failed besides its result.

    `rule` are its arguments, `sql` finds such rows in the whole table, "" where no SQL says it. `past` says how it went
    in the ticks before, of which `ranks` and `shares` have one place each (`Outcome.rank`; None: it did not run).
    """

    rule: str = ""
    sql: str = ""
    past: str = ""
    ranks: tuple[int | None, ...] = ()
    shares: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """What a report says of its tick besides the results. `before` is the tick published before it, 0 for none.

    `options` are those that show needs to read the same tables; `tables` are all that the tick was to bring up to
    date, `parents` who reads whom. `problem` is why the tick ended before its end. `evidence` (of those
    that failed) and `rules` (the arguments of all) are by the ids of checks.
    """

    project: str
    engine: str
    profile: str
    env: str
    before: int
    at: datetime
    options: str = ""
    tables: tuple[str, ...] = ()
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `where` is a table, a column or columns, and `title` what stands before and after it.

    `link` leads from target/ to its rule.
    """

    kind: Kind
    model: str
    where: str
    title: tuple[str, str]
    rule: str
    amount: str
    description: str
    said: str
    severity: str
    place: str
    link: str
    samples: tuple[str, ...]
    unshown: int
    held_back: tuple[str, ...]
    advice: str
    evidence: Evidence = Evidence()

    @property
    def css(self) -> str:
        """Return its class on a page."""
        return self.kind.level.css if isinstance(self.kind, Outcome) else Level.BLOCKS.css

    @property
    def choice(self) -> str:
        """Return the name of the outcome by which readers may choose it, "" where it is no check's."""
        return self.kind.stored if isinstance(self.kind, Outcome) else ""


def clean(text: str, most: int = LONGEST_NAME, keep: str = "") -> str:
    r"""Cut a text, and write as escapes what a screen would obey.

    >>> clean("a\x00b" + "c" * 9, 8)
    'a\\x00bc…'
    """
    whole = escaped(text[: most + 1], keep).translate(NO_CHARACTERS)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def message(text: str, most: int = LONGEST_MESSAGE) -> str:
    """Cut a message of many lines; empty ones go."""
    lines = [line.rstrip() for line in clean(text, most, "\n").split("\n") if line.strip()]
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"... {counted(len(lines) - LINES, 'line')} more in run_results.json"]
    return "\n".join(lines)


def amount(check: CheckResult) -> str:
    """Return how many of how many rows, and what share that is.

    >>> share(3, 1234)
    '0.24 %'
    """
    if not check.unexpected:
        return ""
    if not check.evaluated:
        return counted(check.unexpected, "row")
    of = counted(check.evaluated, "row")
    return f"{check.unexpected:,} of {of} ({share(check.unexpected, check.evaluated)})"


def share(part: int, whole: int) -> str:
    """Write a share in percent; what is little is not nothing, and nearly all is not all."""
    percent = 100 * part / whole
    if part and percent < 0.01:
        return "< 0.01 %"
    if part < whole and percent > 99.99:
        return "> 99.99 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def headline(result: TickResult, about: About) -> str:
    """Return one sentence on the result of the tick."""
    name = f"Tick {result.tick}" if result.tick else "The tick"
    name += f" of environment {clean(about.env)}" if about.env else ""
    if not result.published:
        readers = f"readers still see tick {about.before}" if about.before else "readers see nothing yet"
        return f"{name} is NOT published: {readers}, because {_because(result, about)}."
    levels = Counter(check.status.level for check in result.checks)
    parts = [counted(levels[level], level.noun) for level in (Level.WARNING, Level.NOTE) if levels[level]]
    if parts:
        return f"{name} is published, with {' and '.join(parts)} from {counted(len(result.checks), 'check')}."
    if not result.checks:
        return f"{name} is published; no rows changed that a check looks at."
    which = "the check" if len(result.checks) == 1 else f"all {len(result.checks):,} checks"
    return f"{name} is published, and {which} passed."


def _because(result: TickResult, about: About) -> str:
    held = Counter(check.status for check in result.checks if check.status.blocks)
    broken = [node.name for node in result.nodes if node.status == "error"]
    reasons = [f"{counted(held[one], 'check')} {one.words.told}" for one in BLOCKING if held[one]]
    reasons += [f"{counted(len(broken), 'table')} could not be brought up to date"] if broken else []
    if not reasons:
        return "the build ended before its end" if about.problem else "something failed"
    models = {*broken, *(check.model for check in result.checks if check.status.blocks)}
    where = clean(next(iter(models))) if len(models) == 1 else f"{len(models):,} models"
    return f"{' and '.join(filter(None, [', '.join(reasons[:-1]), reasons[-1]]))} in {where}"


def failures(result: TickResult, about: About) -> tuple[Finding, ...]:
    """List what kept the tick from being published: what ended the build, then steps, then checks."""
    nodes = [node for node in result.nodes if node.status == "error"]
    checks = [check for check in result.checks if check.status.blocks]
    rooms = iter(_rooms(len(nodes) + len(checks)))
    found = [_stopped(about)] if about.problem else []
    found += [_broken(node, result, about, next(rooms)) for node in nodes]
    held = {name: held_back(name, result, about) for name in {check.model for check in checks}}
    for check in sorted(checks, key=lambda check: BLOCKING.index(check.status)):
        found.append(_finding(check, held[check.model], next(rooms), advice(check), about.evidence))
    return tuple(found)


def warnings(result: TickResult, about: About | None = None) -> tuple[Finding, ...]:
    """List the checks that failed and didn't keep the tick from being published."""
    return _told(result, about, Level.WARNING)


def notes(result: TickResult, about: About | None = None) -> tuple[Finding, ...]:
    """List the checks that failed and are no more than worth knowing."""
    return _told(result, about, Level.NOTE)


def _told(result: TickResult, about: About | None, level: Level) -> tuple[Finding, ...]:
    found = [check for check in result.checks if check.status.level is level]
    pairs, known = zip(found, _rooms(len(found)), strict=True), about.evidence if about else {}
    return tuple(_finding(check, (), room, advice(check), known) for check, room in pairs)


def _rooms(findings: int) -> list[int]:
    rest = max(0, findings - FIRST)
    return [MOST] * (findings - rest) + [max(LEAST, min(MOST, ROOM // max(rest, 1)))] * rest


def held_back(name: str, result: TickResult, about: About) -> tuple[str, ...]:
    """Return the names of the tables below one that failed which were skipped, or not begun."""
    done = {node.name for node in result.nodes if node.status not in ("skipped", "error")}
    below = {name}
    waiting = True
    while waiting:
        more = {child for child, above in about.parents.items() if child not in below and below & set(above)}
        below |= more
        waiting = bool(more)
    return tuple(clean(table) for table in about.tables if table in below - {name} - done)


def _stopped(about: About) -> Finding:
    return Finding(
        kind="stopped",
        model="",
        where="the build",
        title=("The build ended before its end", ""),
        rule="",
        amount="",
        description="",
        said=message(about.problem),
        severity="",
        place="",
        link="",
        samples=(),
        unshown=0,
        held_back=(),
        advice="Do what the message says, then run `sqlrun build` again.",
    )


def _broken(node: NodeResult, result: TickResult, about: About, room: int) -> Finding:
    return Finding(
        kind="broken",
        model=clean(node.name),
        where=clean(node.name),
        title=("", " could not be brought up to date"),
        rule=clean(node.kind or "model"),
        amount="",
        description="",
        said=message(node.message or "no message", max(LEAST, min(room, LONGEST_MESSAGE))),
        severity="",
        place="",
        link="",
        samples=(),
        unshown=0,
        held_back=held_back(node.name, result, about),
        advice="Do what the message says, then run `sqlrun build` again: what was not published is made anew.",
    )


def _finding(
    check: CheckResult, below: tuple[str, ...], room: int, advice: str, known: Mapping[str, Evidence]
) -> Finding:
    description = clean(check.description.strip(), min(room, LONGEST_SAMPLE))
    shown: list[str] = []
    left = room - len(description)
    for sample in check.samples[:SAMPLES]:
        text = clean(sample, LONGEST_SAMPLE)
        left -= len(text)
        if left < 0:
            break
        shown.append(text)
    counted_rows = amount(check) if check.status.evaluated else ""
    said = "" if counted_rows else message(check.message, min(room, LONGEST_MESSAGE))
    place = str(check.place)
    return Finding(
        kind=check.status,
        model=clean(check.model),
        where=clean(subject(check)),
        title=check.status.headline(counted_rows),
        rule=clean(check.type),
        amount=counted_rows,
        description=description,
        said=said,
        severity=clean(check.severity),
        place=clean(place),
        link=_link(check.place.file),
        samples=tuple(shown),
        unshown=len(check.samples) - len(shown),
        held_back=below,
        advice=advice,
        evidence=_evidence(known.get(check.check_id), room),
    )


def _evidence(found: Evidence | None, room: int) -> Evidence:
    """Clean what is known of a check; where there are many failures, SQL that has no room is left out, not cut."""
    if found is None:
        return Evidence()
    text = clean(found.sql, room, "\n")
    rule = clean(found.rule, min(room, LONGEST_SAMPLE))
    past = clean(found.past, LONGEST_SAMPLE)
    return replace(found, rule=rule, sql="" if text.endswith("…") else text, past=past)


def _link(file: str) -> str:
    """Lead from target/ to a file of the project; no link where it can't be one."""
    sound = file and len(file) <= LONGEST_NAME and not file.startswith(("/", "<")) and ".." not in file.split("/")
    return "../" + quote(file.encode("utf-8", "replace"), safe="/") if sound else ""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Lines of a model that a tick has set aside, by reason; `more` are those of reasons that are not listed."""

    model: str
    lines: int
    reasons: tuple[tuple[str, int], ...]
    more: int


def quarantined(nodes: Iterable[NodeResult]) -> tuple[Quarantined, ...]:
    """List what was set aside, the most frequent reasons first."""
    found = []
    for node in nodes:
        if node.quarantined:
            reasons = sorted(node.reasons, key=lambda reason: (-reason[1], reason[0]))[:SAMPLES]
            more = node.quarantined - sum(count for _, count in reasons)
            listed = tuple((clean(reason), count) for reason, count in reasons)
            found.append(Quarantined(clean(node.name), node.quarantined, listed, more))
    return tuple(found)


def by_model(checks: Sequence[CheckResult]) -> dict[str, list[CheckResult]]:
    """Group checks by model, in the order in which they came."""
    found: dict[str, list[CheckResult]] = {}
    for check in checks:
        found.setdefault(check.model, []).append(check)
    return found
