"""Unit tests that passed before, over the very same project: a build needn't run them again. Shell: the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from sqlrun.load.load import facts
from sqlrun.pipeline import Prepared
from sqlrun.project import Project, UnitTest
from sqlrun.runtime.disk_cache import Cache, digest
from sqlrun.unit_tests.run.results import TestResult


def results(
    prepared: Prepared, tests: Sequence[UnitTest], cache: Cache | None, run: Callable[[], list[TestResult]]
) -> list[TestResult]:
    """Return the results of tests: all passed where they did before and nothing they could depend on has changed.

    What that is isn't asked test by test: one model, macro or seed that was edited has them all run again.
    """
    if cache is None or not tests:
        return run()
    made: list[list[TestResult]] = []

    def passing() -> bool | None:
        made.append(run())
        return True if all(result.status == "pass" for result in made[0]) else None

    # What the project is called is no part of what a test says; DuckDB, which answers, is.
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
