"""`sqlrun test`, and the tests that a build runs first. Shell: the project, the terminal, target/, DuckDB."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlrun import durable, pipeline
from sqlrun.cache import Cache
from sqlrun.console import Console
from sqlrun.model import UnitTest
from sqlrun.pipeline import Prepared
from sqlrun.unit import choosing, last_run, made, shown
from sqlrun.unit.chosen import of_models
from sqlrun.unit.junit import junit
from sqlrun.unit.made import Facts
from sqlrun.unit.results import TestResult


def run_unit_tests(root: Path, options: Mapping[str, Any]) -> int:
    """Carry out `sqlrun test`: 0 where all that was selected passes, be it nothing."""
    prepared = pipeline.prepare(root, Cache.of(root))
    console = Console(quiet=options["quiet"] or options["as_json"])
    tests = choosing.chosen(prepared.graph, tests_of(prepared), options["select"], options["exclude"])
    if options["failed"]:
        tests = _failed(root, prepared, tests, console)
    elif not tests:
        console.print(shown.NOTHING, "warning")
    results = _run(root, prepared, tests, console, fail_fast=options["fail_fast"])
    if options["junit"]:
        durable.put(options["junit"], junit(prepared.nouns.name, results, known_of(prepared)))
    if options["as_json"]:
        console.raw(json.dumps(shown.as_json(results), indent=2, ensure_ascii=False))
    return 0 if passed(results) else 1


def before_build(root: Path, prepared: Prepared, names: Iterable[str], console: Console) -> bool:
    """Run the unit tests of models that are to be built; tell whether all passed."""
    tests = of_models(prepared.nouns, prepared.graph.order, frozenset(names))
    results = list(results_of(prepared, tests))
    console.lines(shown.brief(results, known_of(prepared)))
    _note(root, prepared, tests, results, console)
    return passed(results)


def tests_of(prepared: Prepared) -> tuple[UnitTest, ...]:
    """List all unit tests, those of macros before the models' in the order of the graph."""
    order = prepared.graph.order
    return of_models(prepared.nouns, order, order)


def known_of(prepared: Prepared) -> Callable[[str], Facts]:
    """Give what tells of a model that failed."""
    return made.tested(prepared.nouns, prepared.graph, prepared.queries)


def passed(results: Iterable[TestResult]) -> bool:
    """Tell whether all passed; a test that is an error didn't."""
    return all(result.status == "pass" for result in results)


def results_of(prepared: Prepared, tests: Iterable[UnitTest]) -> Generator[TestResult, None, None]:
    """Run tests, one by one as they are asked for."""
    from sqlrun.unit.queries import Queries
    from sqlrun.unit.run import run

    queries = {each.name: each for each in prepared.queries}
    own = Queries(prepared.nouns, queries)
    pairs = ((test, own.of(test)[test.model]) for test in tests)
    yield from run(prepared.nouns, queries, pairs, models=prepared.space.models, own=own)


def _run(
    root: Path, prepared: Prepared, tests: Sequence[UnitTest], console: Console, *, fail_fast: bool
) -> list[TestResult]:
    results: list[TestResult] = []
    try:
        with closing(results_of(prepared, tests)) as running:
            for result in running:
                results.append(result)
                console.lines([shown.line(result, len(results), len(tests))])
                if fail_fast and result.status != "pass":
                    break
    finally:
        # What ran before Ctrl-C is known too.
        _note(root, prepared, tests, results, console)
    console.lines(shown.failures(results, known_of(prepared)))
    if tests:
        console.lines(shown.closing(results, len(tests)))
    return results


def _failed(root: Path, prepared: Prepared, tests: tuple[UnitTest, ...], console: Console) -> tuple[UnitTest, ...]:
    """Keep the tests that failed before; all where nothing is known of before."""
    before = last_run.read(root)
    if before is None:
        console.print(f"No run before is known: {last_run.FILE} is not there, or torn. Running all.", "warning")
        return tests
    chosen, _ = choosing.failed(tests, before)
    _, gone = choosing.failed(tests_of(prepared), before)
    if gone:
        console.print(f"No longer there, and left out: {', '.join(gone)}", "warning")
    if not chosen:
        console.print("No unit test failed when it last ran; nothing to run.", "good")
    return chosen


def _note(
    root: Path, prepared: Prepared, tests: Sequence[UnitTest], results: Sequence[TestResult], console: Console
) -> None:
    said = {choosing.key_of(test): result.status for test, result in zip(tests, results, strict=False)}
    try:
        last_run.write(root, map(choosing.key_of, tests_of(prepared)), said)
    except OSError as error:
        console.print(f"{last_run.FILE} can't be written, so --failed won't know of this run: {error}", "error")
