"""The lines of a build's log, in the form that dbt users know. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlrun.events import CheckResult, Event, NodeResult, Note, StageReceipt, Started, TickResult
from sqlrun.expectations.validate import from_contract
from sqlrun.outcome import Level, Outcome
from sqlrun.project import Model, Profile
from sqlrun.runtime.text_lines import text_lines
from sqlrun.runtime.text_table import aligned, as_csv, as_json, counted, escaped, table
from sqlrun.version import __version__

if TYPE_CHECKING:
    from sqlrun.pipeline import Prepared

__all__ = [
    "LOUD", "Line", "Span", "Style", "as_csv", "as_json", "check_details", "checks", "closing", "failures", "is_idle",
    "line", "opening", "receipts_table", "running", "subject", "table", "tick_line",
]  # fmt: skip

Style = Literal["plain", "dim", "good", "warning", "error", "detail"]
# Start and end of a part of a text, and its style.
Span = tuple[int, int, Style]
# Styles that `--quiet` prints too; `detail` is for the text of an error.
LOUD: frozenset[Style] = frozenset({"error", "detail"})
DOTS = 80
SAMPLES = 5
LONGEST_MESSAGE = 20
# Maximum number of names in a sentence.
NAMED = 6
_NOUNS = {"seed": "seed", "landing": "landing"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a build's log; the console adds the time.

    Dots run from `text` to `tag`, the bracket at the end. `style` applies to the tag, or to the text without a tag.
    `spans` are parts of the text with their own style.
    """

    text: str
    tag: str = ""
    style: Style = "plain"
    spans: tuple[Span, ...] = ()

    def head(self, columns: int = DOTS) -> str:
        """Return the line without its tag, with dots up to a column if it has one."""
        return f"{self.text} ".ljust(columns, ".") + " " if self.tag else self.text

    def __str__(self) -> str:
        return self.head() + self.tag


def opening(prepared: Prepared, profile: Profile) -> list[Line]:
    """Return what the project contains and how it runs; the version is dim, as only `--verbose` prints it."""
    suites, tables = prepared.workspace.suites, prepared.workspace.tables
    declared = sum(len(suites[m.name].expectations) for m in tables if m.name in suites)
    found = {
        "model": len(tables),
        "view": len(prepared.workspace.models) - len(tables),
        "seed": len(prepared.project.seeds),
        "source": len(prepared.project.sources),
        "check": declared + sum(_by_contract(m.query.rendered.model) for m in tables),
        "unit test": len(prepared.project.unit_tests),
    }
    said = ", ".join(counted(number, noun) for noun, number in found.items() if number)
    return [
        Line(f"Running with sqlrun={__version__}", style="dim"),
        Line(f"Found {said or 'nothing'}"),
        Line(
            f"Concurrency: {counted(profile.threads, 'thread')} (profile='{profile.name}', engine='{profile.engine}')"
        ),
    ]


def _by_contract(model: Model) -> int:
    return len(from_contract(model)) + (model.freshness is not None)


def line(event: Event, what: str = "") -> Line:
    """Return the line of one event; `what` is the text of the step's `Started`, for a result without a kind."""
    match event:
        case Started():
            return Line(f"{event.index} of {event.total} START {event.what}", "[RUN]")
        case Note():
            return Line(event.text)
        case CheckResult():
            return _check_line(event)
        case NodeResult():
            return _node_line(event, what)


def _node_line(node: NodeResult, what: str) -> Line:
    named = what or _named(node)
    progress, time = f"{node.index} of {node.total}", f" in {node.seconds:.2f}s"
    match node.status:
        case "success":
            verb = {"seed": "loaded ", "landing": "landed "}.get(node.kind, "")
            text = f"{progress} OK {verb}{named.removeprefix('landing ')}"
            details = f", {node.quarantined:,} quarantined" if node.quarantined else ""
            details += _dropped([node])
            details += f", {node.lines.exceptions()}" if node.lines.exceptions() else ""
            return Line(text, f"[OK {counted(node.rows, 'row')}{details}{time}]", "good")
        case "error":
            kind = node.kind or named.partition(" ")[0]
            verb = {"seed": "loading ", "landing": ""}.get(kind, "creating ")
            return Line(f"{progress} ERROR {verb}{named}", f"[ERROR{time}]", "error")
        case "skipped":
            return Line(f"{progress} SKIP {named}", "[SKIP]", "warning")
        case _:
            return Line(f"{progress} NO-OP {named}", f"[NO-OP{time}]", "dim")


def _dropped(nodes: Iterable[NodeResult]) -> str:
    """Return the number of lines that landings dropped, behind a comma; "" if they dropped none."""
    count = sum(count for node in nodes for _, count in node.dropped)
    return f", {count:,} dropped" if count else ""


def dropped_lines(node: NodeResult) -> list[Line]:
    """Return the reasons why a landing dropped lines, with their numbers, as one line; none if it dropped none."""
    reasons = ", ".join(f"{count:,} {escaped(reason)}" for reason, count in node.dropped)
    return [Line(f"  dropped: {reasons}", style="dim")] if reasons else []


def _named(node: NodeResult) -> str:
    if not node.kind:
        return node.name
    return f"{node.kind} {node.name}" if node.kind in _NOUNS else f"{node.kind} model {node.name}"


def subject(check: CheckResult) -> str:
    """Return what a check examined: a table, a column, or several columns."""
    if len(check.columns) == 1:
        return f"{check.model}.{check.columns[0]}"
    return f"{check.model}({', '.join(check.columns)})" if check.columns else check.model


def _check_line(check: CheckResult) -> Line:
    outcome = check.status
    counts = check.unexpected and outcome.evaluated and outcome.level is not Level.GOOD
    word = outcome.words.line + (f" {check.unexpected:,}" if counts else "")
    text = f"{word} {check.type} {subject(check)}"
    return Line(text, f"[{word} in {check.seconds:.2f}s]", outcome.level.style)


def checks(results: Sequence[CheckResult]) -> list[Line]:
    """Return the lines of one model's checks: one for each check that didn't pass, one for all passed checks."""
    passed = [check for check in results if check.status is Outcome.PASS]
    lines = [_check_line(check) for check in results if check.status is not Outcome.PASS]
    if passed:
        seconds = sum(check.seconds for check in passed)
        text = f"PASS {counted(len(passed), 'check')} of {passed[0].model}"
        lines.append(Line(text, f"[PASS in {seconds:.2f}s]", "good"))
    return lines


def running(steps: Sequence[tuple[str, float]], done: int, total: int, columns: int, most: int = 8) -> list[str]:
    """Return the running steps (what, seconds) above a progress bar; no line is wider than `columns`."""
    longest_first = sorted(steps, key=lambda step: -step[1])
    lines = [f"{seconds:9.1f}s {escaped(what)}" for what, seconds in longest_first[:most]]
    if len(steps) > most:
        lines.append(f"{'':10} and {len(steps) - most} more")
    size = max(4, min(20, columns - 32))
    full = size * done // total if total else 0
    lines.append(f"[{'#' * full}{'.' * (size - full)}] {done} of {total} done, {len(steps)} running")
    return [text[: max(1, columns - 1)] for text in lines]


def is_idle(result: TickResult) -> bool:
    """Return whether a published tick changed nothing, and no check failed or warned."""
    quiet = all(check.status.level in (Level.GOOD, Level.NOTE) for check in result.checks)
    return result.published and quiet and all(node.status == "no-op" for node in result.nodes)


def tick_line(result: TickResult) -> Line:
    """Return the summary of a published tick in one line."""
    when = f"as_of {result.as_of:%Y-%m-%d %H:%M} UTC"
    took = f"({result.seconds:.2f}s{_requests(result)})"
    if is_idle(result):
        return Line(f"Nothing new: tick {result.tick} published, {when}, {_unchanged(result)} {took}")
    changed = [node for node in result.nodes if node.status == "success"]
    tables = f"{len(changed):,} of {counted(len(result.nodes), 'table')} changed"
    rows = counted(sum(node.rows for node in changed), "row")
    quarantined = sum(node.quarantined for node in changed)
    rows += f", {quarantined:,} quarantined" if quarantined else ""
    rows += _dropped(changed)
    levels = Counter(check.status.level for check in result.checks)
    parts = [f"{counted(levels[Level.GOOD], 'check')} passed"] if levels[Level.GOOD] else []
    parts += [counted(levels[one], one.noun) for one in (Level.WARNING, Level.NOTE) if levels[one]]
    said = ", ".join([f"{tables} ({rows})", *parts])
    style: Style = "warning" if levels[Level.WARNING] else "good"
    return Line(f"Tick {result.tick} published: {when}, {said} {took}", style=style)


def _requests(result: TickResult) -> str:
    """Return the number of requests to the store, behind a comma; "" on a disk."""
    return "" if result.requests is None else f", {counted(result.requests, 'request')}"


def _unchanged(result: TickResult) -> str:
    kinds = Counter("seed" if node.kind == "seed" else "model" for node in result.nodes)
    found = [counted(kinds[noun], noun) for noun in ("model", "seed") if kinds[noun]]
    return f"{listed(found) if found else 'no models'} unchanged"


def closing(
    result: TickResult, before: int | None = None, unit_tests: int = 0, test_seconds: float = 0.0
) -> list[Line]:
    """Return the summary of a tick: what ran, what failed and where, and whether readers see it.

    `before` is the tick published before it: 0 for none, None if unknown. `unit_tests` is the number of unit tests that
    ran before the tick, in `test_seconds`.
    """
    tally, details = _tally(result), failures(result)
    took = _duration(result.seconds + test_seconds)
    took += _requests(result)
    lines = [Line(f"Finished running {_ran(result, unit_tests)}{took}."), _completed(tally)]
    lines += [*details, Line("")] if details else []
    if result.published:
        lines.append(Line(f"Tick {result.tick} published: as_of {result.as_of:%Y-%m-%d %H:%M} UTC", style="good"))
    else:
        readers = "readers still see the tick before"
        if before is not None:
            readers = f"readers still see tick {before}" if before else "readers see nothing yet"
        lines.append(Line(f"Tick {result.tick} is not published; {readers}.", style="error"))
    words = ("PASS", "WARN", *(["INFO"] if tally["INFO"] else []), "ERROR", "SKIP", "NO-OP")
    done = " ".join(f"{word}={tally[word]}" for word in words)
    style: Style = "error" if tally["ERROR"] else "plain"
    return [*lines, Line(f"Done. {done} TOTAL={sum(tally.values())}", style=style)]


def _tally(result: TickResult) -> Counter[str]:
    words = {"success": "PASS", "skipped": "SKIP", "no-op": "NO-OP"}
    steps = [words.get(node.status, "ERROR") for node in result.nodes]
    return Counter([*steps, *(check.status.level.tally for check in result.checks)])


def _ran(result: TickResult, unit_tests: int) -> str:
    kinds = Counter(_NOUNS.get(node.kind, "model") for node in result.nodes)
    kinds["check"], kinds["unit test"] = len(result.checks), unit_tests
    order = ("landing", "seed", "model", "check", "unit test")
    return ", ".join(counted(kinds[noun], noun) for noun in order if kinds[noun]) or "nothing"


def _duration(seconds: float) -> str:
    # Round first: 59.999 is a minute, not "60.00 seconds".
    hundredths = round(seconds * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    long = [counted(hours, "hour")] if hours else []
    long += [counted(minutes, "minute")] if hours or minutes else []
    return f" in {' '.join([*long, f'{rest / 100:.2f} seconds'])}"


def _completed(tally: Counter[str]) -> Line:
    parts = [counted(tally["ERROR"], "error")] if tally["ERROR"] else []
    parts += [f"{tally['SKIP']:,} skipped"] if tally["SKIP"] else []
    parts += [counted(tally["WARN"], "warning")] if tally["WARN"] else []
    if not parts:
        noted = f", with {counted(tally['INFO'], 'note')}:" if tally["INFO"] else ""
        return Line(f"Completed successfully{noted}", style="good")
    parts += [counted(tally["INFO"], "note")] if tally["INFO"] else []
    style: Style = "error" if tally["ERROR"] else "warning"
    return Line(f"Completed with {listed(parts)}{':' if tally['ERROR'] or tally['WARN'] else ''}", style=style)


def listed(parts: Sequence[str]) -> str:
    """Return names in a sentence; of many the first ones, and the number of the others.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"]), listed(["a"] * 9)
    ('a', 'a and b', 'a, b and c', 'a, a, a, a, a and 4 more')
    """
    if len(parts) > NAMED:
        parts = [*parts[: NAMED - 1], f"{len(parts) - NAMED + 1:,} more"]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def failures(result: TickResult, least: Level = Level.NOTE) -> list[Line]:
    """Return the failed steps, then the checks that didn't pass with a level of at least `least`, errors first."""
    lines: list[Line] = []
    for nodes in broken(result):
        named = listed([_named(node) for node in nodes])
        lines += [Line(""), Line(f"Error in {named}", style="error"), *message_lines(nodes[0].message)]
    for check in sorted(result.checks, key=lambda check: -check.status.level.place):
        if check.status is not Outcome.PASS and check.status.level.place >= least.place:
            lines += [Line(""), *check_details(check)]
    return lines


def broken(result: TickResult) -> list[list[NodeResult]]:
    """Return the failed steps, together if they have one cause, as a broker that several sources read."""
    by_message: dict[str, list[NodeResult]] = {}
    for node in result.nodes:
        if node.status == "error":
            by_message.setdefault(node.message or node.name, []).append(node)
    return list(by_message.values())


def message_lines(text: str) -> Iterator[Line]:
    """Yield the lines of an error's message, to print below its headline; a long message is cut."""
    lines = [part for part in text_lines(escaped(text, "\n")) if part.strip()]
    for part in lines[:LONGEST_MESSAGE]:
        yield Line(f"  {part.rstrip()}", style="detail")
    if len(lines) > LONGEST_MESSAGE:
        yield Line(f"  ... {counted(len(lines) - LONGEST_MESSAGE, 'line')} more in run_results.json", style="detail")


def check_details(check: CheckResult) -> Iterator[Line]:
    """Yield the details of a check that didn't pass: what it expects, what it found, and some of the rows."""
    outcome = check.status
    inner: Style = "detail" if outcome.blocks else "plain"
    yield Line(
        f"{outcome.words.detail} check {check.type} of {subject(check)} ({check.place})", style=outcome.level.style
    )
    if check.description:
        yield Line(f"  {escaped(check.description.strip())}", style=inner)
    share = f"{check.unexpected:,} of " if check.evaluated else ""
    amount = f"Got {share}{counted(check.evaluated or check.unexpected, 'row')}" if check.unexpected else ""
    said = outcome.sentence(amount, check.message)
    severity = f" (severity {check.severity})" if outcome.level is Level.BLOCKS or outcome.evaluated else ""
    if said:
        yield Line(f"  {escaped(said)}{severity}{':' if check.samples else ''}", style=inner)
    for sample in check.samples[:SAMPLES]:
        yield Line(f"    {escaped(sample)}", style=inner)


def receipts_table(result: TickResult) -> list[str]:
    """Return each table's cost: rows changed, read and written, commits, jobs, seconds; `-` means unknown."""
    header = (
        "table", "strategy", "reason", "rows changed", "rows read", "bytes read", "files read",
        "rows written", "bytes written", "files written", "commits", "jobs", "seconds", "check seconds",
    )  # fmt: skip
    stages = [stage for node in result.nodes for stage in node.stages]
    if not stages:
        return ["No table changed."]
    costs = [_costs(stage) for stage in stages]
    sums = [_sum(column) for column in zip(*costs, strict=True)]
    cells = [[s.table, s.strategy, s.reason, *_cost_cells(c)] for s, c in zip(stages, costs, strict=True)]
    lines = aligned(header, [*cells, ["total", "", "", *_cost_cells(sums)]], "<<<" + ">" * len(sums))
    return lines if result.requests is None else [*lines, f"{counted(result.requests, 'request')} to the object store"]


def _costs(stage: StageReceipt) -> list[float | None]:
    r = stage.receipt
    read, written = (r.rows_read, r.bytes_read, r.files_read), (r.rows_written, r.bytes_written, r.files_written)
    return [stage.rows_changed, *read, *written, r.commits, r.jobs, r.seconds, stage.check_seconds]


def _sum(column: Iterable[float | None]) -> float | None:
    known = [number for number in column if number is not None]
    return sum(known) if known else None


def _cost_cells(costs: Sequence[float | None]) -> list[str]:
    in_bytes, in_seconds = {2, 5}, {9, 10}
    cells = []
    for place, cost in enumerate(costs):
        if cost is None:
            cells.append("-")
        elif place in in_bytes:
            cells.append(byte_size(int(cost)))
        else:
            cells.append(f"{cost:,.2f}" if place in in_seconds else f"{int(cost):,}")
    return cells


def byte_size(size: int) -> str:
    """Return a number of bytes as text with about three digits.

    >>> byte_size(1_234_567)
    '1.2 MB'
    """
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"
