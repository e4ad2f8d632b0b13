"""Queries that DuckDB can't run are rejected before a tick, with a code, a place and the analyst's own text."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb import binding
from sqlrun.pipeline import Prepared, prepare
from sqlrun.runtime.disk_cache import Cache
from tests.support import broken
from tests.support.probes import verdict


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [
        ("select id, k + s as y from ref.t", "SR310", 16),
        ("select id, id as i, coalesce(x, s) as y from ref.t", "SR310", 21),
        ("select id, upper(k) as y from ref.t", "SR310", 18),
        ("select k, sum(s) as y from ref.t group by k", "SR310", 15),
        ("select id, e.a from ref.t lateral view explode(m) e as a", "SR310", 48),
        ("select id, percentile(k, 0.5) over (partition by s) as y from ref.t", "SR310", 12),
        ("select id, make_interval(k) as y from ref.t", "SR310", 12),
        ("select id, explode(m) as e from ref.t", "SR553", 12),
        ("select id, sequence(d, d + interval 1 day) as y from ref.t", "SR310", 21),
    ],
)
def test_queries_that_duckdb_cannot_run_are_refused(sql: str, code: str, column: int) -> None:
    found = verdict(sql)

    assert [(p.code, p.place.line, p.place.column) for p in found.problems] == [(code, 1, column)], found


@pytest.mark.parametrize(
    ("sql", "method"),
    [
        ("select id, k from ref.t where k in (select max(u.k) from ref.u where u.s = t.s)", "keys"),
        ("select exists (select 1 from ref.u where u.k = t.k) as e, count(*) as n from ref.t group by 1", "full"),
        ("select t.id, u.uid, w.s from ref.t left join (ref.u join ref.w on u.k = w.k) on t.k = u.k", "full"),
        ("select id, lag(k) ignore nulls over (partition by s order by id) as y from ref.t", "keys"),
        ("(select id from ref.t)", "rows"),
    ],
)
def test_queries_that_once_failed_in_a_tick_are_accepted(sql: str, method: str) -> None:
    found = verdict(sql)

    assert (found.method, found.problems, found.wrong) == (method, (), "")


SEED = {
    "seeds/one.csv": "id,s\n1,a\n",
    "seeds/one.yml": broken.contract("one", "id", "s string").replace("models:", "seeds:"),
}


def project(folder: Path, **queries: str) -> Prepared:
    """Prepare a project of models over a seed with a number and a text."""
    return prepare(broken.write(folder, SEED | broken.models(queries)))


def test_a_view_that_does_not_bind_is_reported_once(tmp_path: Path) -> None:
    """Not again for each of its readers, whose queries contain it."""
    view = "{{ config(materialized='view') }}\nselect id * s as id from {{ ref('one') }}\n"
    prepared = project(tmp_path, v=view, m="select id from {{ ref('v') }}", n="select id from {{ ref('m') }}")

    found = binding.problems(binding.Fit(prepared.project, prepared.workspace.models), prepared.names)

    assert [(p.code, str(p.place)) for p in found] == [("SR310", "models/v.sql:2:8")]


def test_an_accepted_model_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm build opens no DuckDB for it; another type of an input is checked again."""
    cache, folder = Cache(None), tmp_path / "project"
    prepared = project(folder, m="select length(concat(s, upper(s))) as id from {{ ref('one') }}")
    assert binding.problems(binding.Fit(prepared.project, prepared.workspace.models, cache), prepared.names) == ()
    opened = []
    connect = binding.connect
    monkeypatch.setattr(binding, "connect", lambda **settings: opened.append(1) or connect(**settings))

    assert binding.problems(binding.Fit(prepared.project, prepared.workspace.models, cache), prepared.names) == ()
    assert opened == []

    (folder / "seeds/one.yml").write_text(SEED["seeds/one.yml"].replace("string", "int"))
    (folder / "seeds/one.csv").write_text("id,s\n1,2\n")
    edited = prepare(folder)
    found = binding.problems(binding.Fit(edited.project, edited.workspace.models, cache), edited.names)
    assert [p.code for p in found] == ["SR310"]


def test_doubled_quotes_are_one_as_on_spark() -> None:
    found = verdict("select id, 'it''s' as a, '''' as b, '' as c from ref.t where id = 1")

    assert found.rows is not None
    assert [row[1:] for row in found.rows] == [("it's", "'", "")]


def test_a_median_is_a_double_as_on_spark() -> None:
    """DuckDB's median of 1.25 and 2.50 as decimals is 1.87."""
    found = verdict("select k, median(x) as a, percentile(x, 0.5) as b from ref.t where k = 1 group by k")

    assert found.rows is not None
    assert list(found.rows) == [(1, 1.875, 1.875)]
