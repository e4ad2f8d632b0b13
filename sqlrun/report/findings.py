"""Findings of a tick: what failed, where, in how many rows, and what to do, as sanitized text for every report. Pure.

Values of rows, names and messages are untrusted. This module truncates them and escapes control characters; each format
escapes its own markup (`<`, `|`).
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
from sqlrun.report.log_lines import broken, listed, subject
from sqlrun.report.remedies import advice
from sqlrun.runtime.text_table import counted, escaped

# A check's outcome; a step that failed; a build that ended early.
Kind = Outcome | Literal["broken", "stopped"]
# The first findings get full samples and messages; the others share what is left equally. This bounds the file's size
# whatever the number of findings.
FIRST, MOST = 20, 4_000
ROOM, LEAST = 70_000, 150
LONGEST_NAME, LONGEST_SAMPLE, LONGEST_MESSAGE = 120, 400, 2_000
SAMPLES = 20
LINES = 30
# XML can't contain these two characters, and no screen shows them.
NO_CHARACTERS = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence on a check that failed, in addition to its result.

    `rule` holds its arguments. `sql` finds such rows in the whole table, "" if SQL can't express the rule. `past`
    summarizes the ticks before; `ranks` and `shares` have one value for each (`Outcome.rank`; None: it did not run).
    """

    rule: str = ""
    sql: str = ""
    past: str = ""
    ranks: tuple[int | None, ...] = ()
    shares: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """Context of a tick's report. `before` is the tick published before it, 0 for none.

    `options` are the command-line options with which `show` reads the same tables. `tables` are all tables that the
    tick had to update, `parents` maps each to its inputs. `problem` is why the build ended early. `evidence` (of failed
    checks) and `rules` (the arguments of all checks) are keyed by check id. `sample` says which events an environment
    has; "" for all.
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
    sample: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `where` is a table, a column or columns; `title` is the text before and after it.

    `link` is the path from target/ to the rule's file.
    """

    kind: Kind
    model: str
    where: str
    title: tuple[str, str]
    rule: str
    amount: str
    description: str
    detail: str
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
        """Return its CSS class."""
        return self.kind.level.css if isinstance(self.kind, Outcome) else Level.BLOCKS.css

    @property
    def choice(self) -> str:
        """Return the name of its outcome, for the page's filter; "" if it isn't a check."""
        return self.kind.stored if isinstance(self.kind, Outcome) else ""


def clean(text: str, most: int = LONGEST_NAME, keep: str = "") -> str:
    r"""Return a text truncated to `most` characters, with control characters escaped.

    >>> clean("a\x00b" + "c" * 9, 8)
    'a\\x00bc…'
    """
    whole = escaped(text[: most + 1], keep).translate(NO_CHARACTERS)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def message(text: str, most: int = LONGEST_MESSAGE) -> str:
    """Return a message truncated in length and lines, without empty lines."""
    lines = [line.rstrip() for line in clean(text, most, "\n").split("\n") if line.strip()]
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"... {counted(len(lines) - LINES, 'line')} more in run_results.json"]
    return "\n".join(lines)


def amount(check: CheckResult) -> str:
    """Return the unexpected rows as a count and a share of all rows; "" if there are none.

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
    """Return a share in percent; a tiny share isn't rounded to 0, nor an almost full one to 100."""
    percent = 100 * part / whole
    if part and percent < 0.01:
        return "< 0.01 %"
    if part < whole and percent > 99.99:
        return "> 99.99 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def headline(result: TickResult, about: About) -> str:
    """Return the tick's result in one sentence."""
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
        return f"{name} is published; no checked rows changed."
    which = "the check" if len(result.checks) == 1 else f"all {len(result.checks):,} checks"
    return f"{name} is published, and {which} passed."


def _because(result: TickResult, about: About) -> str:
    held = Counter(check.status for check in result.checks if check.status.blocks)
    broken = [node.name for node in result.nodes if node.status == "error"]
    reasons = [f"{counted(held[one], 'check')} {one.words.verb}" for one in BLOCKING if held[one]]
    reasons += [f"{counted(len(broken), 'table')} could not be updated"] if broken else []
    if not reasons:
        return "the build ended early" if about.problem else "something failed"
    models = {*broken, *(check.model for check in result.checks if check.status.blocks)}
    where = clean(next(iter(models))) if len(models) == 1 else f"{len(models):,} models"
    return f"{' and '.join(filter(None, [', '.join(reasons[:-1]), reasons[-1]]))} in {where}"


def failures(result: TickResult, about: About) -> tuple[Finding, ...]:
    """Return what blocked publishing: the reason why the build ended, then failed steps, then failed checks."""
    nodes = broken(result)
    checks = [check for check in result.checks if check.status.blocks]
    rooms = iter(_rooms(len(nodes) + len(checks)))
    found = [_stopped(about)] if about.problem else []
    found += [_broken(one, result, about, next(rooms)) for one in nodes]
    held = {name: held_back(name, result, about) for name in {check.model for check in checks}}
    for check in sorted(checks, key=lambda check: BLOCKING.index(check.status)):
        found.append(_finding(check, held[check.model], next(rooms), advice(check), about.evidence))
    return tuple(found)


def warnings(result: TickResult, about: About | None = None) -> tuple[Finding, ...]:
    """Return the failed checks that did not block publishing."""
    return _of_level(result, about, Level.WARNING)


def notes(result: TickResult, about: About | None = None) -> tuple[Finding, ...]:
    """Return the failed checks of severity info."""
    return _of_level(result, about, Level.NOTE)


def _of_level(result: TickResult, about: About | None, level: Level) -> tuple[Finding, ...]:
    found = [check for check in result.checks if check.status.level is level]
    pairs, known = zip(found, _rooms(len(found)), strict=True), about.evidence if about else {}
    return tuple(_finding(check, (), room, advice(check), known) for check, room in pairs)


def _rooms(findings: int) -> list[int]:
    rest = max(0, findings - FIRST)
    return [MOST] * (findings - rest) + [max(LEAST, min(MOST, ROOM // max(rest, 1)))] * rest


def held_back(name: str, result: TickResult, about: About) -> tuple[str, ...]:
    """Return the names of the tables downstream of a failed one that were skipped or not started."""
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
        title=("The build ended early", ""),
        rule="",
        amount="",
        description="",
        detail=message(about.problem),
        severity="",
        place="",
        link="",
        samples=(),
        unshown=0,
        held_back=(),
        advice="Follow the message, then run `sqlrun build` again.",
    )


def _broken(nodes: Sequence[NodeResult], result: TickResult, about: About, room: int) -> Finding:
    """Return the finding of steps that failed for one cause."""
    node = nodes[0]
    below = dict.fromkeys(table for one in nodes for table in held_back(one.name, result, about))
    return Finding(
        kind="broken",
        model=clean(node.name),
        where=listed([clean(one.name) for one in nodes]),
        title=("", " could not be updated"),
        rule="",
        amount="",
        description="",
        detail=message(node.message or "no message", max(LEAST, min(room, LONGEST_MESSAGE))),
        severity="",
        place="",
        link="",
        samples=(),
        unshown=0,
        held_back=tuple(below),
        advice="Follow the message, then run `sqlrun build` again. It redoes everything that was not published.",
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
    detail = "" if counted_rows else message(check.message, min(room, LONGEST_MESSAGE))
    place = str(check.place)
    return Finding(
        kind=check.status,
        model=clean(check.model),
        where=clean(subject(check)),
        title=check.status.headline(counted_rows),
        rule=clean(check.type),
        amount=counted_rows,
        description=description,
        detail=detail,
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
    """Return sanitized evidence; SQL that exceeds the room left is dropped, not truncated."""
    if found is None:
        return Evidence()
    text = clean(found.sql, room, "\n")
    rule = clean(found.rule, min(room, LONGEST_SAMPLE))
    past = clean(found.past, LONGEST_SAMPLE)
    return replace(found, rule=rule, sql="" if text.endswith("…") else text, past=past)


def _link(file: str) -> str:
    """Return the path from target/ to a file of the project; "" if it can't be linked."""
    sound = file and len(file) <= LONGEST_NAME and not file.startswith(("/", "<")) and ".." not in file.split("/")
    return "../" + quote(file.encode("utf-8", "replace"), safe="/") if sound else ""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Lines of a model that a tick quarantined, by reason; `more` counts lines of reasons that are not listed."""

    model: str
    lines: int
    reasons: tuple[tuple[str, int], ...]
    more: int


def quarantined(nodes: Iterable[NodeResult]) -> tuple[Quarantined, ...]:
    """Return the quarantined lines of each model, the most frequent reasons first."""
    found = []
    for node in nodes:
        if node.quarantined:
            reasons = sorted(node.reasons, key=lambda reason: (-reason[1], reason[0]))[:SAMPLES]
            more = node.quarantined - sum(count for _, count in reasons)
            listed = tuple((clean(reason), count) for reason, count in reasons)
            found.append(Quarantined(clean(node.name), node.quarantined, listed, more))
    return tuple(found)


def by_model(checks: Sequence[CheckResult]) -> dict[str, list[CheckResult]]:
    """Return checks grouped by model, in order of first appearance."""
    found: dict[str, list[CheckResult]] = {}
    for check in checks:
        found.setdefault(check.model, []).append(check)
    return found
