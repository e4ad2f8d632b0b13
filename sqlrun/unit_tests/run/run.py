"""Analysts' unit tests, offline: given rows, played ticks, expected rows. Shell: DuckDB."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from graphlib import TopologicalSorter
from typing import Any

from sqlrun import pipeline_cache
from sqlrun.engines.duckdb import binding, data_errors
from sqlrun.engines.duckdb.memory import LONGEST, Computer, Memory, OnDuckDB, connect, failures
from sqlrun.errors import DataError, EngineError, Problem, ProjectError
from sqlrun.graph import failing_expressions
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.compile import Compiled
from sqlrun.load.contract_files import facts
from sqlrun.parse import spark_only
from sqlrun.parse.parse import Query
from sqlrun.plan import plan
from sqlrun.project import Project, UnitTest
from sqlrun.runtime.disk_cache import Cache, digest
from sqlrun.runtime.stopping import limited
from sqlrun.runtime.text_lines import text_lines
from sqlrun.test_definitions.queries import Queries
from sqlrun.unit_tests.affected import shape
from sqlrun.unit_tests.run.chain import Chain, alone, chain, cut_of
from sqlrun.unit_tests.run.results import TestResult
from sqlrun.unit_tests.run.statements import Statements
from sqlrun.unit_tests.run.steps import Misuse, Play
from sqlrun.unit_tests.run.tables import Difference

ENDLESS = "Add a condition that ends a recursive query, or give the test fewer rows."
ON_SPARK = "`sqlrun test --engine spark` runs this test."


def run(
    project: Project,
    queries: Mapping[str, Query],
    tests: Iterable[tuple[UnitTest, Query]],
    *,
    models: Iterable[Compiled] | None = None,
    own: Queries | None = None,
    engine: str = "duckdb",
    cache: Cache | None = None,
) -> Generator[TestResult, None, None]:
    """Run tests and yield their results; each test comes with its model's query as the test sees it.

    `models` are the project's compiled models and `own` the tests' queries; without them both are computed here.
    `cache` has the statements of earlier runs, and gets those of this one.
    With the engine `spark`, Spark runs the statements and queries, and its results are compared with DuckDB's too.
    """
    runner = _Runner(
        project, queries, models, own or Queries(project, queries), _computer(engine), cache or Cache(None)
    )
    try:
        for test, query in tests:
            yield runner.result(test, query)
    finally:
        runner.connection.close()


class _Runner:
    """One connection for all tests, with the statements compiled for earlier tests."""

    def __init__(
        self,
        project: Project,
        queries: Mapping[str, Query],
        models: Iterable[Compiled] | None,
        own: Queries,
        computer: Computer,
        cache: Cache,
    ) -> None:
        self._project, self._own, self._computer, self._cache = project, own, computer, cache
        self._known = {m.name: m for m in (_compiled(project, queries) if models is None else models)}
        self._fit = binding.Fit(project, self._known.values(), cache)
        self.connection = connect()
        self._made: dict[object, tuple[Mapping[str, Query], Chain, Statements]] = {}
        self._shapes: dict[int, tuple[Query, str]] = {}
        self._contracts: object = None

    def result(self, test: UnitTest, query: Query) -> TestResult:
        """Run one test; errors become part of the result."""
        started = time.perf_counter()

        def result(status: str, **details: Any) -> TestResult:
            return TestResult(test.name, test.model, test.place, status, time.perf_counter() - started, **details)

        # A recursive query may never end; the limit is far above the time for hand-written rows.
        with limited(self.connection.interrupt, LONGEST) as watch:
            try:
                found = self._difference(test, query)
            except ProjectError as error:
                return result("error", message=_in_one_line(error.problems[0]))
            except Misuse as error:
                return result("error", message=f"SR121 {error}")
            except (failures(), EngineError) as error:
                if watch.over:
                    message = f"SR121 {test.place}  the test took longer than {LONGEST:g} s. {ENDLESS}"
                    return result("error", message=message)
                return result("error", message=self._error_text(error, query))
            except ValueError as error:
                return result("error", message=f"SR121 {test.place}  {_first_line(error)}")
        if found is None:
            return result("pass")
        return result("fail", **{field.name: getattr(found, field.name) for field in fields(found)})

    def _error_text(self, error: Exception, query: Query) -> str:
        """Return an engine's error in one line; of one about a value of a row, the place of the expression."""
        match data_errors.as_engine_error(error):
            case DataError() as failed:
                queries = {name: compiled.query for name, compiled in self._known.items()}
                return _in_one_line(failing_expressions.problem(failed, query, queries))
            case other:
                return _first_line(other)

    def _difference(self, test: UnitTest, query: Query) -> Difference | None:
        made, statements = self._prepared(test, query)
        other = self._spark_only_problems(made)
        on_spark = self._computer.dialect == "spark"
        if other and not on_spark:
            raise ProjectError(other)
        if not test.as_of and statements.asks_the_time():
            raise ValueError("the model reads the time of the tick. Add `as_of` to the test")
        rules = {m.name: plan.rules_of(self._project, m) for ms in made.landing.values() for m in ms}
        reference = statements.on("duckdb") if on_spark and not other else None
        return Play(Memory(self.connection, self._computer), made, statements, test, rules, reference).difference()

    def _spark_only_problems(self, made: Chain) -> tuple[Problem, ...]:
        """Return what DuckDB can't run of a test's models; unchanged models are bound to the project's tables too."""
        functions = self._project.functions
        apart = [m.query for m in made.models if not pipeline_cache.calls_alike(m.query, functions, self._cache)]
        own = [m.name for m in made.models if m.name in self._known and self._known[m.name].query is m.query]
        return spark_only.problems(apart, functions, ON_SPARK) or binding.problems(self._fit, own, ON_SPARK)

    def _prepared(self, test: UnitTest, query: Query) -> tuple[Chain, Statements]:
        """Return what a test computes; tests with the same queries and the same given inputs share it."""
        own = {**self._own.of(test), query.name: query}
        cut = cut_of(test)
        plays = bool(test.steps)
        key = (query.name, cut, plays, tuple(id(one) for one in own.values()))
        if key not in self._made:
            made = alone(query) if test.macro else chain(self._project, own, self._known, query.name, cut, plays=plays)
            source = digest([self._above(own, query.name), sorted(cut.given), sorted(cut.lines), plays])
            self._made[key] = (
                own,
                made,
                Statements(made, own, self._computer.dialect, source, self._cache.get_or_make),
            )
        _, made, statements = self._made[key]
        return made, statements

    def _above(self, seen: Mapping[str, Query], name: str) -> object:
        """Return what a model's statements depend on: it, the models above, contracts of seeds and sources."""
        if self._contracts is None:
            sources = [[source.table, facts(source.columns)] for source in self._project.sources]
            seeds = [[seed.name, facts(seed.columns), seed.grain] for seed in self._project.seeds]
            self._contracts = [sources, seeds, self._project.functions]
        left, found = [name], {name}
        for one in left:
            new = [ref for ref in seen[one].rendered.refs if ref in seen and ref not in found]
            left += new
            found.update(new)
        return [self._contracts, name, [[one, self._shape(seen[one])] for one in sorted(found)]]

    def _shape(self, query: Query) -> str:
        if id(query) not in self._shapes:
            self._shapes[id(query)] = query, digest(shape(query))
        return self._shapes[id(query)][1]


def _compiled(project: Project, queries: Mapping[str, Query]) -> Iterable[Compiled]:
    """Yield the compiled models that can be maintained, each after its inputs."""
    graph = {name: [ref for ref in query.rendered.refs if ref in queries] for name, query in queries.items()}
    catalog = compiler.new_catalog(project)
    for name in TopologicalSorter(graph).static_order():
        made = None
        with suppress(ProjectError):
            made = compiler.model(queries[name], catalog)
            yield made
        compiler.add(catalog, queries[name], made)


def _computer(engine: str) -> Computer:
    if engine != "spark":
        return OnDuckDB()
    from sqlrun.engines.spark.session import session_of
    from sqlrun.unit_tests.run.spark import OnSpark

    return OnSpark(session_of({}))


def _first_line(error: Exception) -> str:
    return text_lines(str(error).strip())[0]


def _in_one_line(problem: Problem) -> str:
    return f"{problem.code} {problem.place}  {problem.message}. {problem.hint}".strip()
