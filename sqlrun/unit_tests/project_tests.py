"""A project's unit tests: listing, running, printing of results. Shell: the terminal, target/, DuckDB."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun.artifacts import state_files
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared
from sqlrun.project import UnitTest
from sqlrun.report.console import Console
from sqlrun.runtime.disk_cache import Cache
from sqlrun.unit_tests import choosing
from sqlrun.unit_tests.output import column_origin, shown
from sqlrun.unit_tests.output.column_origin import Facts
from sqlrun.unit_tests.run import last_run
from sqlrun.unit_tests.run.results import TestResult

if TYPE_CHECKING:
    from sqlrun.test_definitions.queries import Queries


def tests_of(prepared: Prepared) -> tuple[UnitTest, ...]:
    """Return all unit tests: those of macros, then those of models in the order of the graph."""
    return choosing.of_models(prepared.project, prepared.graph.order, [model.name for model in prepared.project.models])


def chosen(root: Path, prepared: Prepared, options: Mapping[str, Any]) -> tuple[UnitTest, ...]:
    """Return the unit tests that the options of a command select."""
    select, exclude = options["select"], options["exclude"]
    graph = state_files.compared(prepared.graph, prepared.workspace, (*select, *exclude), root, options["state"])
    return choosing.chosen(graph, tests_of(prepared), select, exclude)


def by_name(prepared: Prepared) -> dict[str, Query]:
    """Return the project's queries by name."""
    return {query.name: query for query in prepared.queries}


def known_of(prepared: Prepared) -> Callable[[str], Facts]:
    """Return a function from a model's name to the facts that explain a failure."""
    return column_origin.tested(prepared.project, prepared.graph, prepared.queries)


def passed(results: Iterable[TestResult]) -> bool:
    """Return whether all tests passed; an error is no pass."""
    return all(result.status == "pass" for result in results)


def results_of(
    prepared: Prepared, tests: Iterable[UnitTest], cache: Cache | None = None, engine: str = "duckdb"
) -> Generator[TestResult, None, None]:
    """Run tests lazily and yield their results; many tests share two processes, unless Spark runs them."""
    from sqlrun.test_definitions.queries import Queries
    from sqlrun.unit_tests.run.parallel import shared

    own = Queries(prepared.project, by_name(prepared))

    def run(some: Iterable[UnitTest]) -> Generator[TestResult, None, None]:
        return run_queries(prepared, ((test, own.of(test)[test.model]) for test in some), own, cache, engine)

    return shared(list(tests), run, cache) if engine == "duckdb" else run(tests)


def run_queries(
    prepared: Prepared,
    tests: Iterable[tuple[UnitTest, Query]],
    own: Queries | None = None,
    cache: Cache | None = None,
    engine: str = "duckdb",
) -> Generator[TestResult, None, None]:
    """Run tests, each with the query that it tests; `own` has the tests' queries if they are known already."""
    from sqlrun.unit_tests.run.run import run

    models = prepared.workspace.models
    return run(prepared.project, by_name(prepared), tests, models=models, own=own, engine=engine, cache=cache)


def run_tests(
    root: Path,
    prepared: Prepared,
    tests: Sequence[UnitTest],
    console: Console,
    options: Mapping[str, Any],
    cache: Cache | None = None,
) -> list[TestResult]:
    """Run tests, print their results and save them for `--failed`; return the results of the tests that ran.

    `cache` is saved with its new entries.
    """
    results: list[TestResult] = []
    started = time.perf_counter()
    try:
        with closing(results_of(prepared, tests, cache, options["engine"])) as running:
            for result in running:
                results.append(result)
                if options["verbose"] or result.status != "pass":
                    console.lines([shown.line(result, len(results), len(tests))])
                if options["fail_fast"] and result.status != "pass":
                    break
    finally:
        # Tests that finished before Ctrl-C are saved too.
        note(root, prepared, tests, results, console)
        if cache is not None:
            cache.save()
    console.lines(shown.failures(results, known_of(prepared)))
    if tests:
        console.lines(shown.closing(results, len(tests), time.perf_counter() - started))
    return results


def note(
    root: Path, prepared: Prepared, tests: Sequence[UnitTest], results: Sequence[TestResult], console: Console
) -> None:
    """Save the results for `--failed`; print an error if that fails."""
    statuses = {choosing.key_of(test): result.status for test, result in zip(tests, results, strict=False)}
    try:
        last_run.write(root, map(choosing.key_of, tests_of(prepared)), statuses)
    except OSError as error:
        console.print(f"{last_run.FILE} can't be written, so --failed ignores this run: {error}", "error")
