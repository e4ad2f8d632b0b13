"""`sqlrun test`, and the tests that a build runs first. Shell: the project, the terminal, target/, DuckDB."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun import pipeline
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared
from sqlrun.project import UnitTest
from sqlrun.report.console import Console
from sqlrun.runtime import atomic_files
from sqlrun.runtime.disk_cache import Cache
from sqlrun.unit_tests import choosing
from sqlrun.unit_tests.output import made, shown
from sqlrun.unit_tests.output.junit import junit
from sqlrun.unit_tests.output.made import Facts
from sqlrun.unit_tests.run import known, last_run
from sqlrun.unit_tests.run.results import TestResult

if TYPE_CHECKING:
    from sqlrun.test_definitions.queries import Queries


def run_unit_tests(root: Path, options: Mapping[str, Any]) -> int:
    """Carry out `sqlrun test`: 0 where all that was selected passes, be it nothing."""
    if options["watch"]:
        from sqlrun.unit_tests.watch import watch

        return watch(root, options)
    cache = Cache.of(root)
    prepared = pipeline.prepare(root, cache)
    # Whoever reads JSON from here finds nothing else.
    console = Console(quiet=options["quiet"], out=sys.stderr if options["as_json"] else None)
    tests = choosing.chosen(prepared.graph, tests_of(prepared), options["select"], options["exclude"])
    if options["failed"]:
        tests = _failed(root, prepared, tests, console)
    elif not tests:
        console.print(shown.NOTHING, "warning")
    results = run_tests(root, prepared, tests, console, options, cache)
    if options["junit"]:
        atomic_files.put(options["junit"], junit(prepared.project.name, results, known_of(prepared)))
    if options["as_json"]:
        Console().raw(json.dumps(shown.as_json(results), indent=2, ensure_ascii=False))
    wanted = options["coverage"] or options["min_coverage"] is not None
    enough = not wanted or _covered(root, prepared, tests, options, console)
    return 0 if passed(results) and enough else 1


def _covered(
    root: Path, prepared: Prepared, tests: Sequence[UnitTest], options: Mapping[str, Any], console: Console
) -> bool:
    """Tell what the tests leave out; False where that is more than may be."""
    from sqlrun.unit_tests.output import coverage, covered

    chosen = options["select"] or options["exclude"] or options["failed"]
    models = {test.model for test in tests} if chosen else {each.name for each in prepared.queries}
    found = coverage.measure(prepared, models, tests)
    coverage.write(root, found)
    console.lines(covered.lines(found))
    least, share = options["min_coverage"], covered.share(found)
    if least is not None and share < least:
        console.print(f"Coverage is {share:.1f} %, and must be {least:g} % at least.", "error")
        return False
    return True


def before_build(
    root: Path, prepared: Prepared, names: Iterable[str], console: Console, cache: Cache | None = None
) -> bool:
    """Run the unit tests of models that are to be built; tell whether all passed.

    Those that passed before, of a project that `cache` knows, don't run again.
    """
    tests = choosing.of_models(prepared.project, prepared.graph.order, frozenset(names))
    results = known.results(prepared, tests, cache, lambda: list(results_of(prepared, tests, cache)))
    console.lines(shown.brief(results, known_of(prepared)))
    _note(root, prepared, tests, results, console)
    return passed(results)


def tests_of(prepared: Prepared) -> tuple[UnitTest, ...]:
    """List all unit tests: those of macros, then those of models in the order of the graph."""
    return choosing.of_models(prepared.project, prepared.graph.order, [model.name for model in prepared.project.models])


def known_of(prepared: Prepared) -> Callable[[str], Facts]:
    """Give what tells of a model that failed."""
    return made.tested(prepared.project, prepared.graph, prepared.queries)


def passed(results: Iterable[TestResult]) -> bool:
    """Tell whether all passed; a test that is an error didn't."""
    return all(result.status == "pass" for result in results)


def results_of(
    prepared: Prepared, tests: Iterable[UnitTest], cache: Cache | None = None, engine: str = "duckdb"
) -> Generator[TestResult, None, None]:
    """Run tests, one by one as they are asked for; many of them in two processes, unless a JVM computes."""
    from sqlrun.test_definitions.queries import Queries
    from sqlrun.unit_tests.run.shared import shared

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
    """Run tests, each with the query that it looks at; `own` has made those queries, where it did."""
    from sqlrun.unit_tests.run.run import run

    models = prepared.workspace.models
    return run(prepared.project, by_name(prepared), tests, models=models, own=own, engine=engine, cache=cache)


def by_name(prepared: Prepared) -> dict[str, Query]:
    """Give the project's queries by name."""
    return {query.name: query for query in prepared.queries}


def run_tests(
    root: Path,
    prepared: Prepared,
    tests: Sequence[UnitTest],
    console: Console,
    options: Mapping[str, Any],
    cache: Cache | None = None,
) -> list[TestResult]:
    """Run tests, print what they say and note it for `--failed`; give the results of those that ran.

    What `cache` learns is saved.
    """
    results: list[TestResult] = []
    try:
        with closing(results_of(prepared, tests, cache, options["engine"])) as running:
            for result in running:
                results.append(result)
                console.lines([shown.line(result, len(results), len(tests))])
                if options["fail_fast"] and result.status != "pass":
                    break
    finally:
        # What ran before Ctrl-C is known too.
        _note(root, prepared, tests, results, console)
        if cache is not None:
            cache.save()
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
