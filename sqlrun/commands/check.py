"""`sqlrun check`: evaluate checks on published tables, and sum up. Shell: the project, the terminal, the ledger."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlrun import pipeline
from sqlrun.check import needed_packages
from sqlrun.check.check import expectations_of
from sqlrun.check.full_table import Checked, check_table, declared
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError, UsageError
from sqlrun.events import CheckResult, TickResult, blocks
from sqlrun.expectations.suggest import suggest
from sqlrun.graph.selectors import names_tests
from sqlrun.graph.selectors import select as select_nodes
from sqlrun.incremental.compile import Compiled
from sqlrun.outcome import Level, Outcome
from sqlrun.pipeline import Prepared, ledger_of, profile_of
from sqlrun.plan import sampling
from sqlrun.project import Expectation
from sqlrun.publish.reader import find, tick_of
from sqlrun.publish.table_state import Published
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.report.log_lines import Line, Style
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.text_table import counted, json_text


def check_command(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    name: str | None,
    env: str | None,
    options: dict[str, Any],
) -> int:
    """Run `sqlrun check`; return 1 if a critical check fails or any check has an error, else 0."""
    started = time.perf_counter()
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    check_timeout = profile_of(root, prepared, name).check_timeout
    published = tick_of(ledger, options["tick"])
    if options["suggest"]:
        return _suggest(prepared, ledger.warehouse, published, options["suggest"])
    if problems := needed_packages.problems(prepared.workspace):
        raise ProjectError(problems)
    todo = _selected(prepared, select, exclude, options["state"])
    console, engine = Console(), DuckDBEngine()
    done: list[Checked] = []
    prints = sampling.as_built(prepared.workspace, published.tables).prints
    try:
        for model, expectations in todo:
            meaning = prints[model.name]
            done.append(check_table(engine, ledger.warehouse, published, model, expectations, meaning, check_timeout))
            if not options["as_json"]:
                console.lines(lines_of(done[-1], published))
            if options["fail_fast"] and blocks(done[-1].results):
                break
    finally:
        engine.close()
    left = [len(expectations) for _, expectations in todo[len(done) :]]
    results = [result for checked in done for result in checked.results]
    if options["as_json"]:
        console.raw(json.dumps(as_json(done, published, sum(left)), indent=2))
    else:
        console.lines(closing(results, published, time.perf_counter() - started, left))
        if not results and names_tests(prepared.graph, (*select, *exclude)):
            console.print("`sqlrun test` runs unit tests.", "warning")
    return 1 if blocks(results) else 0


def _selected(
    prepared: Prepared, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None
) -> list[tuple[Compiled, tuple[Expectation, ...]]]:
    """Return the models with the selected checks on their tables."""
    from sqlrun.commands.selected_tests import chosen_checks, of_model

    ids = chosen_checks(prepared, select, exclude, state)
    every = declared(prepared.workspace, tuple(model.name for model in prepared.workspace.models))
    found = ((model, of_model(prepared, model, expectations, ids)) for model, expectations in every)
    return [(model, expectations) for model, expectations in found if expectations]


def _suggest(prepared: Prepared, warehouse: str, published: Published, name: str) -> int:
    """Print a suggested suite for a model's table."""
    found = next((model for model in prepared.workspace.tables if model.name == name), None)
    if found is None:
        select_nodes(prepared.graph, (name,))  # its error names similar models
        raise UsageError(f"{name} has no table of its own; a suite needs one")
    engine = DuckDBEngine()
    try:
        known, contract = expectations_of(prepared.workspace, found), found.query.rendered.model
        text = suggest(engine, find(published, warehouse, name), contract, known, published.as_of)
    finally:
        engine.close()
    Console().raw(text)
    return 0


def lines_of(checked: Checked, published: Published) -> list[Line | str]:
    """Return the lines of one table's checks, with a warning if its model was edited or it has no rows."""
    notes = []
    if checked.edited:
        notes.append(f"  {checked.model} was edited since; this is its table at tick {published.tick}")
    if not checked.rows and any(result.status is not Outcome.ERROR for result in checked.results):
        notes.append(f"  {checked.model} has no rows, so no row breaks a rule")
    return [*log_lines.checks(checked.results), *(Line(note, style="warning") for note in notes)]


def closing(results: Sequence[CheckResult], published: Published, seconds: float, left: Sequence[int]) -> list[Line]:
    """Return the checks that didn't pass and a summary, as lines."""
    if not results:
        return [Line(f"No selected table has a check, at {published}.", style="warning")]
    whole = TickResult(published.tick, published.as_of, True, seconds, (), tuple(results))
    counts = Counter(result.status.as_stored for result in results)
    parts = ", ".join(f"{counts[one]:,} {one.words.summed}" for one in Outcome if counts[one])
    worst = max((result.status.level for result in results), key=lambda level: level.place)
    style: Style = (Level.GOOD if worst is Level.NOTE else worst).style
    tables = counted(len({result.model for result in results}), "table")
    lines = [*log_lines.failures(whole), Line("")]
    if left:
        rest = f"{counted(sum(left), 'check')} of {counted(len(left), 'table')}"
        lines.append(Line(f"Stopped after the first failure. Not evaluated: {rest}.", style="warning"))
    lines.append(
        Line(f"{counted(len(results), 'check')} of {tables} at {published}: {parts} in {seconds:.2f}s.", style=style)
    )
    return lines


def as_json(done: Sequence[Checked], published: Published, left: int) -> dict[str, object]:
    """Return all results as plain values for JSON."""
    results = [result for checked in done for result in checked.results]
    counts = Counter(result.status.as_stored for result in results)
    return {
        "tick": published.tick,
        "as_of": json.loads(json_text(published.as_of)),
        "passed": counts[Outcome.PASS],
        "warned": counts[Outcome.WARN],
        "noted": counts[Outcome.INFO],
        "failed": counts[Outcome.FAIL],
        "errors": counts[Outcome.ERROR],
        "not_evaluated": left,
        "tables": [
            {
                "model": checked.model,
                "rows": checked.rows,
                "edited": checked.edited,
                "checks": [_check(result) for result in checked.results],
            }
            for checked in done
        ],
    }


def _check(result: CheckResult) -> dict[str, object]:
    return {
        "check_id": result.check_id,
        "expectation": result.type,
        "columns": list(result.columns),
        "severity": result.severity,
        "status": result.status.stored,
        "evaluated": result.evaluated,
        "unexpected": result.unexpected,
        "samples": list(result.samples),
        "message": result.message,
        "description": result.description,
        "place": str(result.place),
        "seconds": round(result.seconds, 6),
    }
