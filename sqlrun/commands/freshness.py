"""The command source freshness. Shell: the project, the warehouse, target/, the terminal."""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from pathlib import Path

from sqlrun import pipeline
from sqlrun.artifacts import artifact_files
from sqlrun.artifacts.source_freshness import SourceAge, document
from sqlrun.check.freshness import limits
from sqlrun.commands.sources import landing_models
from sqlrun.incremental.compile import Compiled
from sqlrun.outcome import Outcome
from sqlrun.publish.reader import query, relation, tick_of
from sqlrun.publish.table_state import Published
from sqlrun.report.console import Console
from sqlrun.report.log_lines import Line, Style
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.disk_cache import Cache
from sqlrun.system_tables.anomalies import duration
from sqlrun.transpile.writer import identifier, timestamp

STYLES: dict[Outcome, Style] = {Outcome.PASS: "good", Outcome.WARN: "warning", Outcome.FAIL: "error"}


def source_freshness(root: Path, name: str | None, profile: str | None, env: str | None, now: datetime) -> int:
    """Run `sqlrun source freshness`; return 1 if an age exceeds its error limit, or there is no event."""
    started = time.perf_counter()
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = pipeline.ledger_of(root, prepared, profile, env)
    console = Console()
    models = [m for m in landing_models(prepared, name) if m.query.rendered.model.freshness is not None]
    published = tick_of(ledger)
    ages = [_age(ledger.warehouse, published, model, now) for model in models]
    elapsed = time.perf_counter() - started
    content = document(prepared.project.name, ages, now, elapsed, str(uuid.uuid4()))
    file = artifact_files.write_sources(root, content)
    console.lines([_line(number, len(ages), age) for number, age in enumerate(ages, 1)])
    if not ages:
        console.lines(["No landing model declares `event_time` and `freshness`."])
    console.lines([f"Wrote {file.relative_to(root)}"])
    return int(any(age.outcome is Outcome.FAIL or age.age is None for age in ages))


def _age(warehouse: str, published: Published, model: Compiled, now: datetime) -> SourceAge:
    """Return the newest event of a landing model's table up to now."""
    contract, started = model.query.rendered.model, time.perf_counter()
    assert contract.freshness is not None and model.source is not None
    state = published.tables.get(model.name)
    newest: str | None = None
    age: float | None = None
    if state is not None:
        # Text and a number: a time may be outside of what Python has.
        column, until = identifier(contract.event_time, "duckdb"), timestamp(now, "duckdb")
        sql = (
            f"select strftime(newest, '%Y-%m-%dT%H:%M:%S.%fZ') as newest, "
            f"date_diff('millisecond', newest, cast({until} as timestamp)) / 1000 as age "
            f"from (select cast(max({column}) as timestamp) as newest from landed where {column} <= {until})"
        )
        (row,) = arrow_rows.plain(query(sql, [relation(warehouse, model.name, state, "landed")]))
        newest, age = row["newest"], row["age"]
    return SourceAge(model.source, contract.freshness, newest or "", age, time.perf_counter() - started)


def _line(number: int, total: int, age: SourceAge) -> Line:
    name = f"{age.source.group}.{age.source.name}"
    said = "no event" if age.age is None else f"{duration(age.age)} old"
    text = f"{number} of {total} {age.outcome.name} freshness of {name}: {said} ({limits(age.declared)})"
    return Line(text, f"[{age.outcome.name} in {age.seconds:.2f}s]", STYLES[age.outcome])
