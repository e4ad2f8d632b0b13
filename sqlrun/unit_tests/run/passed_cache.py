"""Cache of passed unit tests: a build doesn't repeat them for an unchanged project. Shell: the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from sqlrun.load.contract_files import facts
from sqlrun.pipeline import Prepared
from sqlrun.project import Project, UnitTest
from sqlrun.runtime.disk_cache import Cache, digest
from sqlrun.unit_tests.run.results import TestResult


def results(
    prepared: Prepared, tests: Sequence[UnitTest], cache: Cache | None, run: Callable[[], list[TestResult]]
) -> list[TestResult]:
    """Return the results of tests: cached passes if nothing has changed that they could depend on.

    The key covers the whole project: an edit of one model, macro or seed runs all tests again.
    """
    if cache is None or not tests:
        return run()
    made: list[list[TestResult]] = []

    def passing() -> bool | None:
        made.append(run())
        return True if all(result.status == "pass" for result in made[0]) else None

    # The project's name doesn't affect results; the version of DuckDB does.
    project = [getattr(prepared.project, f.name) for f in fields(Project) if f.name not in ("root", "name", "profile")]
    source = [
        [facts(noun) for noun in project],
        [[test.name, test.model] for test in tests],
        _duckdb(),
    ]
    cache.get_or_make("unit tests", digest(source), bool, passing)
    cache.save()
    return made[0] if made else [TestResult(t.name, t.model, t.place, "pass", 0.0) for t in tests]


def _duckdb() -> str:
    from importlib.metadata import version

    return version("duckdb")
