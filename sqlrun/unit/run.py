"""The analysts' unit tests, offline: rows given, ticks played, rows expected. Shell: DuckDB."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from typing import Any

from sqlrun import spark_alone
from sqlrun.errors import EngineError, ProjectError
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.compile import Compiled
from sqlrun.model import Project, UnitTest
from sqlrun.parse import Query
from sqlrun.unit.chain import Chain, Cut, chain, cut_of
from sqlrun.unit.memory import Memory, OnDuckDB, connect, failures
from sqlrun.unit.results import TestResult
from sqlrun.unit.statements import Statements
from sqlrun.unit.steps import Difference, Play

LONGEST = 60.0


def run(
    nouns: Project,
    queries: Mapping[str, Query],
    tests: Iterable[tuple[UnitTest, Query]],
    *,
    models: Iterable[Compiled] | None = None,
) -> Iterable[TestResult]:
    """Run tests one by one; each comes with its model's query (rendered with the test's own vars).

    `models` are the project's, as they are kept; they are compiled where they are not given.
    """
    runner = _Runner(nouns, queries, models)
    for test, query in tests:
        yield runner.result(test, query)
    runner.connection.close()


class _Runner:
    """One connection for all tests, and what was compiled and written for one of them for the next."""

    def __init__(self, nouns: Project, queries: Mapping[str, Query], models: Iterable[Compiled] | None) -> None:
        self._nouns, self._queries = nouns, queries
        self._known = {m.name: m for m in (compiler.project(_ordered(queries), nouns) if models is None else models)}
        self.connection = connect()
        self._computer = OnDuckDB()
        self._chains: dict[tuple[int, Cut], tuple[Query, Chain, Statements]] = {}

    def result(self, test: UnitTest, query: Query) -> TestResult:
        """Run one test; whatever is wrong with it is part of the result."""
        started = time.perf_counter()

        def result(status: str, **details: Any) -> TestResult:
            return TestResult(test.name, test.model, test.place, status, time.perf_counter() - started, **details)

        # A recursive query may never end; nobody waits longer for rows that are typed by hand.
        watch = threading.Timer(LONGEST, self.connection.interrupt)
        watch.start()
        try:
            found = self._difference(test, query)
        except ProjectError as error:
            return result("error", message=_told(error))
        except (failures(), ValueError, EngineError) as error:
            return result("error", message=str(error).strip().splitlines()[0])
        finally:
            watch.cancel()
        if found is None:
            return result("pass")
        details = {name: getattr(found, name) for name in Difference.__dataclass_fields__}
        return result("fail", **details)

    def _difference(self, test: UnitTest, query: Query) -> Difference | None:
        made, statements = self._prepared(test, query)
        other = spark_alone.problems([model.query for model in made.models], self._nouns.functions)
        if other:
            raise ProjectError(other)
        if statements.asks_the_time() and not test.as_of:
            raise ValueError("the model asks for the tick's time: give the test an `as_of`")
        play = Play(Memory(self.connection, self._computer), made, statements, test)
        return next(iter(play.differences()), None)

    def _prepared(self, test: UnitTest, query: Query) -> tuple[Chain, Statements]:
        cut = cut_of(test)
        key = (id(query), cut)
        if key not in self._chains:
            queries = {**self._queries, query.name: query}
            made = chain(self._nouns, queries, self._known, query.name, cut)
            self._chains[key] = query, made, Statements(made, queries, self._computer.dialect)
        _, made, statements = self._chains[key]
        return made, statements


def _ordered(queries: Mapping[str, Query]) -> list[Query]:
    """Put each query behind those that it reads."""
    graph = {name: [ref for ref in query.rendered.refs if ref in queries] for name, query in queries.items()}
    return [queries[name] for name in TopologicalSorter(graph).static_order()]


def _told(error: ProjectError) -> str:
    """Say the first problem in one line."""
    problem = error.problems[0]
    return f"{problem.code} {problem.place}  {problem.message}. {problem.hint}".strip()
