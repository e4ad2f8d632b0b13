"""What `explain` and `plan` report about engines before a tick."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.explain import explain_engine
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain import engine_selection
from sqlrun.plan.plan import tick_plan
from sqlrun.plan.values import TickPlan
from sqlrun.project import Profile
from tests.engines.test_landed_elsewhere import LINE
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import START

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
ALONE = {"fct_slots": "hash() runs on Spark only"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(project(tmp_path / "shops"), DuckDBEngine())


def profile(site: Site, engine: str = "auto", **settings: str) -> Profile:
    return Profile("here", engine, site.warehouse, 2, settings)


def of(site: Site, name: str) -> Compiled:
    return site.prepared.workspace.model(name)


def plan_of(site: Site) -> TickPlan:
    published = site.ledger.read().published
    return tick_plan(
        site.prepared.workspace, site.warehouse, published, 9, START, [m.name for m in models(site)], False
    )


def models(site: Site) -> tuple[Compiled, ...]:
    return site.prepared.workspace.tables


def test_without_a_choice_there_is_no_text(site: Site) -> None:
    for engine in ("spark", "duckdb"):
        assert explain_engine.of_model(of(site, "stg_sales"), profile(site, engine), {}) == {}
        assert explain_engine.of_plan(plan_of(site), ["stg_sales"], profile(site, engine), {}) == {}


def test_explain_gives_the_rule(site: Site) -> None:
    (said,) = explain_engine.of_model(of(site, "stg_sales"), profile(site), {}).values()

    assert said == "duckdb; spark in a tick that works on more than 4 times DuckDB's memory_limit"


def test_explain_names_spark_only_models(site: Site) -> None:
    said = explain_engine.of_model(of(site, "fct_slots"), profile(site), ALONE)

    assert set(said.values()) == {"spark: hash() runs on Spark only"}


def test_explain_names_the_engine_that_lands(site: Site) -> None:
    by_spark = replace(profile(site), landing="spark")

    (said,) = explain_engine.of_model(of(site, "stg_lines"), profile(site), {}).values()
    (other,) = explain_engine.of_model(of(site, "stg_lines"), by_spark, {}).values()

    assert said == f"{engine_selection.LANDS}, if it is a new table; else the one that created it"
    assert other.startswith("spark, ")


def test_plan_names_the_engine_of_a_build(site: Site) -> None:
    """Before a build only what doesn't depend on sizes is known; afterwards the inputs' sizes are."""
    names = [model.name for model in models(site)]
    before = explain_engine.of_plan(plan_of(site), names, profile(site), ALONE)
    site.write("0.jsonl", [LINE % "a"])
    assert site.tick(START).published

    after = explain_engine.of_plan(plan_of(site), names, profile(site), ALONE)
    tight = explain_engine.of_plan(plan_of(site), names, profile(site, memory_limit="1KB"), ALONE)

    assert before == {"stg_lines": "duckdb", "fct_slots": "spark, as hash() runs on Spark only"}
    assert after["stg_lines"] == after["stg_sales"] == after["mart_hour"] == "duckdb"
    assert tight["stg_sales"] == "spark, as it needs about 0.0 GiB, but DuckDB may use 0.0 GiB"
