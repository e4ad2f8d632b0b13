"""A cached statement equals the statement that would be written again."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest

from sqlrun.engine_api import Dialect
from sqlrun.incremental import statement_cache
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Prepared, Tick, prepare
from sqlrun.pipeline import prepare as prepare_project
from sqlrun.runtime.lru import Recent
from sqlrun.transpile.parameters import bound
from tests.support.projects import ROOT

SPACE = prepare_project(ROOT).workspace
STAGES = [stage for model in SPACE.tables for stage in model.stages if stage.method not in ("land", "full")]
NOON = datetime(2026, 1, 10, 12, 5, tzinfo=timezone.utc)
TIMES = (
    Moment(NOON, NOON - timedelta(minutes=5)),
    Moment(NOON, NOON),
    Moment(NOON.replace(microsecond=7), NOON - timedelta(days=400)),
)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_cache, "_cached", Recent(statement_cache.MOST))


@pytest.mark.parametrize("stage", STAGES, ids=[stage.name for stage in STAGES])
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
@pytest.mark.slow
def test_a_cached_statement_is_that_of_its_tick(stage: Stage, dialect: Dialect) -> None:
    """Regardless of the tick that it was first written in."""
    some = frozenset(stage.inputs)
    kinds = [(some, False, False), (frozenset(stage.inputs[:1]), False, False), (frozenset(), False, False)]
    kinds += [(some, True, False), (some, False, True)]
    for changed, fresh, whole in kinds:
        for moment in TIMES:
            tick = Tick(Moment(moment.as_of, None) if fresh else moment, changed, fresh, whole)
            assert statement_cache.prepared(stage, tick, dialect) == prepare(stage, tick, dialect, "")


def test_a_statement_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Tick] = []

    def counted(stage: Stage, tick: Tick, dialect: Dialect, full: str) -> Prepared | None:
        asked.append(tick)
        return prepare(stage, tick, dialect, full)

    monkeypatch.setattr(statement_cache, "prepare", counted)
    stage = next(stage for stage in STAGES if stage.moves)
    texts = set()
    for moment in TIMES:
        found = statement_cache.prepared(stage, Tick(moment, frozenset(stage.inputs), False), "duckdb")
        assert found is not None
        statement = bound(found.statement, moment.parameters, "duckdb")
        times = set(re.findall(r"timestamptz \\?'([-0-9:. +]*)", str(statement)))
        assert times == {f"{time:%Y-%m-%d %H:%M:%S.%f}+00" for time in moment.parameters.values()}
        texts.add(str(statement))
    assert len(texts) == len(TIMES)
    assert len(asked) == 2  # one for a clock that advanced, one for a clock that didn't


@pytest.mark.slow
def test_the_oldest_statements_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_cache, "_cached", Recent(1))
    for stage in STAGES:
        statement_cache.prepared(stage, Tick(TIMES[0], frozenset(stage.inputs), False), "duckdb")
    assert len(statement_cache._cached) == 1


def test_the_landing_query_is_written_once_except_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = next(m for m in SPACE.tables if m.source is not None)
    assert model.source is not None
    asked: list[str] = []
    monkeypatch.setattr(landing_query, "_modelled", lambda stage, dialect, *_: asked.append(dialect) or "select 1")
    rules = SPACE.rules[model.name]
    for moment in TIMES[:2] * 2 + TIMES[2:]:
        text = landing_query.query(model.own, model.source, rules, "duckdb", moment.as_of)
        assert f"timestamptz '{moment.as_of:%Y-%m-%d %H:%M:%S.%f}+00'" in text
    assert len(asked) == 1
    fewer = landing_query.query(model.own, model.source, rules[1:], "duckdb", NOON)
    assert len(asked) == 2 and rules[0].reason not in fewer
