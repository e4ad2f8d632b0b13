"""`sqlrun views --dialect duckdb`: views of all tables at one tick, in a DuckDB without extensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sqlrun
from sqlrun.engine_api import Append, Merge, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import deletion_vectors, file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.publish import warehouse_format
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import relation
from sqlrun.publish.table_state import TableState
from sqlrun.runtime import arrow_rows
from tests.support import foreign_writers as others
from tests.support.projects import Site, now, rows_of
from tests.support.script import START

COLUMNS = (
    StoredColumn("sel ect", "bigint"),
    StoredColumn("day", "string"),
    StoredColumn("paid", "decimal(9,2)"),
    StoredColumn("_n", "bigint"),
)
NAME = "od d"


@pytest.fixture
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a DuckDB that loads nothing from the network."""
    session = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    session.execute("set TimeZone = 'UTC'")
    yield session
    session.close()


def shown(session: duckdb.DuckDBPyConnection, name: str, schema: str = "small") -> Counter[str]:
    return Counter(map(str, arrow_rows.plain(session.sql(f'select * from "{schema}"."{name}"').to_arrow_table())))


def of_warehouse(folder: Path) -> tuple[str, TableState]:
    """Publish two ticks of one table: with names to quote, partitions, hidden columns, and marked rows in two files."""
    warehouse = str(folder / "wh '1")
    spec = TableSpec(NAME, f"{warehouse}/{NAME}/0a1b2c3d4e5f", COLUMNS, ("day",))
    engine, states = DuckDBEngine(), []
    engine.create(spec)
    every = tuple((f'"{column.name}"', f's."{column.name}"') for column in COLUMNS)
    day = "case i % 3 when 0 then 'a/b' when 1 then 'it''s' end as day"
    rows = f"select i::bigint as {{}}, {day}, {{}} as paid, 1::bigint as _n"
    made = Append(rows.format('"sel ect"', "i::decimal(9,2)") + " from range(90) as r(i)")
    changed = Merge(rows.format('"sel ect"', "-1::decimal(9,2)") + " from range(0, 60, 7) as r(i)", ("sel ect",), (),
                    every, every, 's."sel ect" = 7')  # fmt: skip
    warehouse_format.put(warehouse, 'it\'s "small"')
    ledger = Ledger(warehouse, 'it\'s "small"')
    for tick, statement in enumerate((made, changed), 1):
        version = engine.write(Write(spec, tick - 1, tick, "app", (), statement)).version
        state = TableState(f"{NAME}/0a1b2c3d4e5f", version, START, columns=tuple((c.name, c.type) for c in COLUMNS[:3]))
        states.append(state)
        tables = {NAME: state, f"{NAME}__state_1": state}
        pinned = ledger.pin(tick, START, tables, now(), "test")
        ledger.publish(tick, START, tables, now(), "test", pinned)
    return warehouse, states[-1]


def test_deleted_rows_partitions_and_names_are_as_in_sqlruns_own_reader(
    tmp_path: Path, plain: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_layout, "COPIED", 0)
    warehouse, state = of_warehouse(tmp_path)
    assert len(deletion_vectors.deleted(delta_table.open_table(f"{warehouse}/{state.path}", state.version))) > 1

    for tick in (1, 2):
        for statement in sqlrun.views(warehouse, tick, dialect="duckdb"):
            plain.execute(statement)
        expected = rows_of(relation(warehouse, NAME, state if tick == 2 else dataclass_at(state, 1)))
        assert shown(plain, NAME, 'it\'s ""small""') == Counter(map(str, expected))
        assert len(expected) == (90 if tick == 1 else 89)
    names = plain.sql(f'describe select * from "it\'s ""small"""."{NAME}"').fetchall()
    assert [row[0] for row in names] == ["sel ect", "day", "paid"]
    assert len(sqlrun.views(warehouse, dialect="duckdb")) == 2, "no view of a hidden table"


def dataclass_at(state: TableState, version: int) -> TableState:
    return TableState(state.path, version, state.as_of, columns=state.columns)


def test_the_extension_gets_the_version(tmp_path: Path) -> None:
    warehouse, state = of_warehouse(tmp_path)
    quoted = warehouse.replace("'", "''")

    assert sqlrun.views(warehouse, dialect="duckdb-delta") == [
        'create schema if not exists "it\'s ""small"""',
        f'create or replace view "it\'s ""small"""."{NAME}" as\nselect "sel ect", "day", "paid" from '
        f"delta_scan('{quoted}/{state.path}', version => {state.version})",
    ]


def test_an_unknown_dialect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown dialect `postgres`"):
        sqlrun.views(str(tmp_path), dialect="postgres")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = others.opened(others.project(tmp_path / "shops"))
    yield made
    made.engine.close()


@pytest.mark.slow
@pytest.mark.long
def test_views_show_one_tick_of_all_tables_until_they_are_created_again(
    site: Site, plain: duckdb.DuckDBPyConnection
) -> None:
    """Landing tables without quarantined lines, seeds, marts; by the command, also those of an environment."""
    for number in range(2):
        others.arrive(site, number)
        others.build(site, number)
    for statement in sqlrun.views(site.warehouse, dialect="duckdb"):
        plain.execute(statement)
    first = site.everything()
    assert {name: shown(plain, name) for name in first} == first

    others.arrive(site, 2)
    others.build(site, 2)
    assert site.everything() != first
    assert {name: shown(plain, name) for name in first} == first
    text = others.command(site, "views", "--dialect", "duckdb")
    plain.execute(text)
    assert {name: shown(plain, name) for name in first} == site.everything()
    plain.execute(others.command(site, "views", "--dialect", "duckdb", "--tick", "2"))
    assert {name: shown(plain, name) for name in first} == first

    others.build(site, 2, "--env", "dev")
    plain.execute(others.command(site, "views", "--dialect", "duckdb", "--env", "dev"))
    assert {name: shown(plain, name, "small__dev") for name in first} == site.everything()
