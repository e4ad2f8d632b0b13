"""How many lines a tick may set aside before it isn't published: `max_quarantined`, judged. Shell: the engine."""

from __future__ import annotations

import time
from typing import Any

from sqlrun import landing, quarantine, quarantine_book
from sqlrun.check_samples import LONGEST
from sqlrun.drift_rows import reader_of
from sqlrun.engines import delta_files
from sqlrun.engines.protocol import Relation
from sqlrun.events import CheckResult
from sqlrun.expectation_values import identity
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain import Progress
from sqlrun.model import Expectation, Limit
from sqlrun.plan import QUARANTINED_ROWS
from sqlrun.quarantine import exceeds

TYPE = "max_quarantined"
SAMPLES = 20


def judged(progress: Progress, model: Compiled, commits: tuple[int, ...]) -> tuple[CheckResult, ...]:
    """Hold the lines that have landed since the published tick to the suite's limit; no result where it has none.

    Lines that have been discarded or replayed since they landed don't count as set aside: so a tick that was stopped
    goes on once they are.
    """
    suite = progress.space.suites.get(model.name)
    limit = suite.max_quarantined if suite else None
    if model.source is None or limit is None:
        return ()
    started = time.perf_counter()
    path = progress.plan.tables[model.name].spec.path
    landed = delta_files.landings(path, commits)
    lines, aside, few = _counted(progress, model, landed) if landed else (0, 0, [])
    return (_result(progress, model, limit, lines, aside, few, time.perf_counter() - started),)


def _counted(progress: Progress, model: Compiled, landed: tuple[int, ...]) -> tuple[int, int, list[dict[str, Any]]]:
    """Count the lines of commits, and those that still wait in quarantine; give a few of these."""
    path, version = progress.plan.tables[model.name].spec.path, progress.states[model.name].version
    feed = Relation("feed", path, landing.ORIGIN, "changes", commits=landed)
    held = Relation("held", path, landing.ORIGIN, "new", version=version, where=QUARANTINED_ROWS)
    aside = (
        f"{landing.REASON} is not null and {quarantine.id_of('duckdb')} in "
        f"(select id from ({quarantine.queue(model.name)}) where state <> 'discarded')"
    )

    def rows(sql: str) -> list[dict[str, Any]]:
        text, book = quarantine_book.about(progress.warehouse, progress.plan.env, sql)
        found: list[dict[str, Any]] = reader_of(progress).query(text, (feed, held, *book)).to_pylist()
        return found

    (counts,) = rows(f"select count(*) as lines, count(*) filter ({aside}) as aside from feed where _weight > 0")
    few = rows(
        f"select {landing.REASON} as reason, {landing.FILE} as file, {landing.RAW} as raw from feed "
        f"where _weight > 0 and {aside} order by all limit {SAMPLES}"
    )
    return int(counts["lines"]), int(counts["aside"]), few


def _result(
    progress: Progress,
    model: Compiled,
    limit: Limit,
    lines: int,
    aside: int,
    few: list[dict[str, Any]],
    seconds: float,
) -> CheckResult:
    contract, source = model.query.rendered.model, model.source
    assert source is not None
    bad = exceeds(limit.text, aside, lines)
    shown = () if quarantine.private(contract, source) else ("raw",)
    share = f" ({100 * aside / lines:.2f}%)" if lines else ""
    verb = "waits" if aside == 1 else "wait"
    said = (
        f"{aside:,} of {lines:,} lines that have landed since the published tick {verb} in quarantine{share}; "
        f"max_quarantined allows {limit.text}"
    )
    what = Expectation(TYPE, {"max": limit.text}, "critical", "fail", "", limit.place)
    return CheckResult(
        model=model.name,
        type=TYPE,
        columns=(),
        severity="critical",
        status="fail" if bad else "pass",
        evaluated=lines,
        unexpected=aside,
        samples=tuple(_sample(row, shown) for row in few) if bad else (),
        seconds=seconds,
        message=said,
        description=f"{said}. Those that are discarded or replayed no longer count: sqlrun quarantine list"
        if bad
        else "",
        place=limit.place,
        check_id=identity(model.name, what),
    )


def _sample(row: dict[str, Any], shown: tuple[str, ...]) -> str:
    text = ", ".join(f"{name}={row[name]}" for name in ("reason", "file", *shown))
    return text if len(text) <= 3 * LONGEST else text[: 3 * LONGEST - 1] + "…"
