"""`sqlrun test`, and the tests that run before a build. Shell: the project, the terminal, target/, DuckDB."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun import pipeline
from sqlrun.graph.selectors import names_tests
from sqlrun.pipeline import Prepared
from sqlrun.project import UnitTest
from sqlrun.report.build_display import UnitTestRun
from sqlrun.report.console import Console
from sqlrun.runtime import atomic_files
from sqlrun.runtime.disk_cache import Cache
from sqlrun.unit_tests import choosing
from sqlrun.unit_tests.output import shown
from sqlrun.unit_tests.output.junit import junit
from sqlrun.unit_tests.project_tests import chosen, known_of, note, passed, results_of, run_tests, tests_of
from sqlrun.unit_tests.run import last_run, passed_cache

if TYPE_CHECKING:
    pass


def run_unit_tests(root: Path, options: Mapping[str, Any]) -> int:
    """Run `sqlrun test`; return 0 if all selected tests pass, or if there are none."""
    if options["watch"]:
        from sqlrun.unit_tests.watch import watch

        return watch(root, options)
    cache = Cache.of(root)
    prepared = pipeline.prepare(root, cache)
    # With --json, stdout has the JSON alone.
    console = Console(quiet=options["quiet"], out=sys.stderr if options["as_json"] else None)
    tests = chosen(root, prepared, options)
    if options["failed"]:
        tests = _failed(root, prepared, tests, console)
    elif not tests:
        console.print(shown.NOTHING, "warning")
        if names_tests(prepared.graph, (*options["select"], *options["exclude"])):
            console.print("`sqlrun check` evaluates checks.", "warning")
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
    """Print the coverage; return False if it is below the required minimum."""
    from sqlrun.unit_tests.output import coverage, covered

    is_part = options["select"] or options["exclude"] or options["failed"]
    models = {test.model for test in tests} if is_part else {each.name for each in prepared.queries}
    found = coverage.measure(prepared, models, tests)
    coverage.write(root, found)
    console.lines(covered.lines(found))
    least, share = options["min_coverage"], covered.share(found)
    if least is not None and share < least:
        console.print(f"Coverage is {share:.1f} %, but must be at least {least:g} %.", "error")
        return False
    return True


def before_build(
    root: Path, prepared: Prepared, names: Iterable[str], console: Console, cache: Cache | None = None
) -> UnitTestRun | None:
    """Run the unit tests of the models to build; return what ran, None where a test didn't pass.

    Tests that passed before, as recorded in `cache`, don't run again.
    """
    started = time.perf_counter()
    tests = choosing.of_models(prepared.project, prepared.graph.order, frozenset(names))
    results = passed_cache.results(prepared, tests, cache, lambda: list(results_of(prepared, tests, cache)))
    ran = any(result.seconds for result in results)
    seconds = time.perf_counter() - started if ran else 0.0
    if not passed(results):
        console.release()
    console.log(shown.brief(results, known_of(prepared), seconds))
    note(root, prepared, tests, results, console)
    return UnitTestRun(len(results) if ran else 0, seconds) if passed(results) else None


def _failed(root: Path, prepared: Prepared, tests: tuple[UnitTest, ...], console: Console) -> tuple[UnitTest, ...]:
    """Return the tests that failed before, or all tests if no earlier results are known."""
    before = last_run.read(root)
    if before is None:
        console.print(f"No earlier run is known: {last_run.FILE} is missing or corrupt. Running all tests.", "warning")
        return tests
    chosen, _ = choosing.failed(tests, before)
    _, gone = choosing.failed(tests_of(prepared), before)
    if gone:
        console.print(f"Left out, as they no longer exist: {', '.join(gone)}", "warning")
    if not chosen:
        console.print("No unit test failed in its last run, so there is nothing to run.", "good")
    return chosen
