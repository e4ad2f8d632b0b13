"""Tables of a catalog: they name the folders whose paths stay, and nothing of anybody else is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark import jars
from sqlrun.errors import EngineError, ProjectError, UsageError
from sqlrun.load import profile
from sqlrun.publish import current_folders, tick_views
from sqlrun.publish.catalog_tables import CatalogTables
from tests.publish.test_environments import sales
from tests.run.test_machine import project
from tests.support.projects import Site, prepared
from tests.support.script import FIVE, START

TABLES = {"stg_lines", "stg_sales", "fct_slots", "mart_hour", "mart_best"}


class Memory:
    """A catalog in memory: schemas, tables and their places; it can be out of order."""

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, str]] = {}
        self.statements: list[str] = []
        self.broken = False

    def tables(self, schema: str) -> frozenset[str]:
        if self.broken:
            raise EngineError("the metastore doesn't answer")
        return frozenset(self.schemas.setdefault(schema, {}))

    def location(self, schema: str, table: str) -> str:
        self.statements.append(f"location {table}")
        return self.schemas[schema][table]

    def create(self, schema: str, table: str, folder: str) -> None:
        self.statements.append(f"create {table}")
        self.schemas[schema].setdefault(table, f"file:{folder.replace(' ', '%20')}")

    def drop(self, schema: str, table: str) -> None:
        self.statements.append(f"drop {table}")
        del self.schemas[schema][table]


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def site(tmp_path: Path, memory: Memory) -> Site:
    made = Site(project(tmp_path / "a shop"), DuckDBEngine(), current_folders=True, catalog=CatalogTables(memory))
    sales(made, "0.jsonl", ("a", 1, "x", 5, -1))
    return made


@pytest.mark.usefixtures("unchecked")
def test_each_published_table_is_there_once(site: Site, memory: Memory) -> None:
    assert site.tick(START).published
    name = prepared(site.root).project.name
    places = memory.schemas[name]
    assert set(places) == TABLES
    assert places["mart_best"].replace("%20", " ") == f"file:{current_folders.place(site.ledger)}/mart_best"

    memory.statements.clear()
    sales(site, "1.jsonl", ("b", 1, "x", 5, -1))
    assert site.tick(START + FIVE).published
    # The folders' logs show the new tick.
    assert memory.statements == []
    assert site.said == []


@pytest.mark.usefixtures("unchecked")
def test_a_table_without_a_folder_is_dropped(site: Site, memory: Memory) -> None:
    assert site.tick(START).published
    for file in site.root.rglob("mart_best.*"):
        file.unlink()
    site.prepared = prepared(site.root)
    assert site.tick(START + FIVE).published
    assert set(next(iter(memory.schemas.values()))) == TABLES - {"mart_best"}


@pytest.mark.usefixtures("unchecked")
def test_tables_of_others_stay(site: Site, memory: Memory) -> None:
    name = prepared(site.root).project.name
    theirs = {"mart_best": "s3://elsewhere/mart_best", "notes": "file:/notes", "a_view": ""}
    memory.schemas[name] = dict(theirs)
    assert site.tick(START).published
    found = memory.schemas[name]
    assert {key: found[key] for key in theirs} == theirs
    assert set(found) == TABLES | set(theirs)
    [warning] = site.said
    assert "mart_best that isn't this project's: s3://elsewhere/mart_best" in warning


@pytest.mark.usefixtures("unchecked")
def test_a_tick_is_published_without_its_catalog(site: Site, memory: Memory) -> None:
    memory.broken = True
    assert site.tick(START).published
    [warning] = site.said
    assert "the metastore doesn't answer. The next tick tries again" in warning
    memory.broken = False
    assert site.tick(START + FIVE).published
    assert set(next(iter(memory.schemas.values()))) == TABLES


@pytest.mark.usefixtures("unchecked")
def test_an_environment_has_its_own_schema(site: Site, memory: Memory) -> None:
    assert site.tick(START).published
    dev = Site(site.root, site.engine, env="dev", current_folders=True, catalog=site.catalog)
    assert dev.tick(START).published
    name = prepared(site.root).project.name
    assert set(memory.schemas) == {name, f"{name}__dev"}

    CatalogTables(memory).drop(dev.ledger)
    assert memory.schemas[f"{name}__dev"] == {}
    assert set(memory.schemas[name]) == TABLES


@pytest.mark.usefixtures("unchecked")
def test_the_statements_name_the_folders(site: Site) -> None:
    assert site.tick(START).published
    warehouse, name = site.ledger.warehouse, prepared(site.root).project.name
    first, *others = tick_views.of_tick(warehouse, None, "", "spark-tables")
    assert first == f"create schema if not exists `{name}`"
    assert others[1] == (
        f"create table if not exists `{name}`.`mart_best` using delta "
        f"location '{current_folders.place(site.ledger)}/mart_best'"
    )
    with pytest.raises(UsageError, match="show the newest tick"):
        tick_views.of_tick(warehouse, 1, "", "spark-tables")


@pytest.mark.usefixtures("unchecked")
def test_there_are_no_statements_without_folders(tmp_path: Path) -> None:
    made = Site(project(tmp_path / "shop"), DuckDBEngine())
    sales(made, "0.jsonl", ("a", 1, "x", 5, -1))
    assert made.tick(START).published
    with pytest.raises(UsageError, match="Add `current_folders: true` to the profile"):
        tick_views.of_tick(made.ledger.warehouse, None, "", "spark-tables")


HIVE = {"spark.sql.catalogImplementation": "hive"}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"engine": "duckdb", "catalog": "spark_catalog"}, "`catalog` requires `engine: spark`"),
        ({"engine": "spark", "catalog": "spark_catalog"}, "ends with the session of Spark"),
        ({"engine": "spark", "catalog": "spark_catalog", "settings": HIVE}, ""),
        ({"engine": "spark", "catalog": "unity"}, "Spark doesn't know the catalog `unity`"),
        ({"engine": "spark", "catalog": "unity", "settings": {"spark.sql.catalog.unity": "a.B"}}, ""),
        ({"engine": "spark", "catalog": "a.b"}, "`a.b` isn't the name of a catalog"),
        ({"engine": "spark", "catalog": "any", "settings": {"spark.remote": "sc://host"}}, ""),
    ],
)
def test_a_catalog_outlives_the_session(tmp_path: Path, about: dict[str, object], message: str) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "p.yml").write_text(json.dumps({"warehouse": "w", **about}))
    if not message:
        found = profile.load(tmp_path, "p")
        assert (found.catalog, found.current_folders) == (about["catalog"], True)
        return
    with pytest.raises(ProjectError) as caught:
        profile.load(tmp_path, "p")
    [problem] = caught.value.problems
    assert (problem.code, problem.place.line) == ("SR131", 1)
    assert message in problem.message


@pytest.mark.usefixtures("unchecked")
def test_the_pointer_names_one_tick(site: Site) -> None:
    """The versions in it are those of the tick's folders, also after a crash before it was written."""
    file = Path(current_folders.pointer(current_folders.place(site.ledger)))
    assert site.tick(START).published
    first = file.read_text()
    sales(site, "1.jsonl", ("b", 1, "x", 5, -1))
    assert site.tick(START + FIVE).published
    second = json.loads(file.read_text())
    assert (json.loads(first)["tick"], second["tick"]) == (1, 2)
    assert second["tables"] == dict.fromkeys(TABLES, 1)

    file.write_text(first)
    published = site.ledger.read().published
    assert current_folders.behind(site.ledger, published) == [file.name]
    current_folders.follow(site.ledger, published, site.said.append)
    assert json.loads(file.read_text()) == second
    assert current_folders.behind(site.ledger, published) == []
    current_folders.follow(site.ledger, replace(published, tables={}), site.said.append)
    assert not file.exists()
    current_folders.follow(site.ledger, published, site.said.append, create=True)
    for broken in ("", "[]", '{"tick": null}'):
        file.write_text(broken)
        assert current_folders.behind(site.ledger, published) == [file.name]
    current_folders.drop(site.ledger)
    assert not file.exists()


@pytest.mark.usefixtures("unchecked")
def test_a_catalog_for_readers_needs_the_jar(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert site.tick(START).published
    monkeypatch.setattr(jars, "OWN", tmp_path / "sqlrun-spark.jar")
    with pytest.raises(EngineError, match="SR810 Spark can't read the catalog of published tables"):
        tick_views.of_tick(site.warehouse, None, "", "spark-catalog")
    (tmp_path / "sqlrun-spark.jar").touch()
    _, named, place = tick_views.of_tick(site.warehouse, None, "", "spark-catalog")
    assert named == "set spark.sql.catalog.sqlrun = org.sqlrun.spark.PublishedCatalog"
    assert place == f"set spark.sql.catalog.sqlrun.warehouse = `{site.warehouse}`"
