"""Tables that readers without deletion vectors can open, and the conversion of a table from one kind to the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError

from tests.support import foreign_writers as others
from tests.support import readers_of_delta as readers
from tests.support.foreign_writers import KINDS, arrive, build, command, path_of, true
from tests.support.projects import Site

pytestmark = [pytest.mark.slow, pytest.mark.long]
# No MERGE changes these in a tick.
PLAIN = {"stg_lines", "all_lines", "shops"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = others.opened(others.project(tmp_path / "shops"))
    yield made
    made.engine.close()


def opens(site: Site, name: str) -> bool:
    """Return whether pandas can read a table by delta-rs, with the rows that other readers see."""
    path = path_of(site, name)
    table = DeltaTable(path)
    try:
        found = table.to_pandas()
    except DeltaProtocolError:
        return False
    assert len(found) == table.scan().read_all().num_rows
    assert readers.rows(table.to_pyarrow_table().to_pylist()) == readers.by_duckdb(path, table.version())
    return True


def test_tables_without_merges_are_readable_by_every_reader(site: Site) -> None:
    for number in range(2):
        arrive(site, number)
        build(site, number)
    assert {name for name in KINDS if opens(site, name)} == PLAIN


@pytest.mark.parametrize("reader", ["any", "pandas"])
def test_readable_by_applies_from_the_next_build(site: Site, reader: str) -> None:
    """It is rebuilt, as after any edit of its layout, and rebuilt back; it is correct before, between and after."""
    arrive(site, 0)
    build(site, 0)
    assert not opens(site, "fct_slots")
    contract = site.root / "models" / "fct_slots.yml"
    before = contract.read_text()
    contract.write_text(before.replace("    columns:", f"    config: {{readable_by: {reader}}}\n    columns:", 1))
    assert "fct_slots" in command(site, "plan") and "layout" in command(site, "plan")
    for number in (1, 2):
        arrive(site, number)
        build(site, number)
        plain = others.opened(site.root)
        assert opens(plain, "fct_slots") and not opens(plain, "stg_sales")
        true(plain, number, 3 * (number + 1))
    contract.write_text(before)
    build(site, 3)
    assert not opens(others.opened(site.root), "fct_slots")
    true(others.opened(site.root), 3, 9)


@pytest.mark.parametrize("name", KINDS)
def test_every_reader_sees_the_same_rows_and_the_same_changes(site: Site, name: str) -> None:
    for number in range(3):
        arrive(site, number)
        build(site, number)
    path = path_of(site, name)
    head = DeltaTable(path).version()
    for version in range(head + 1):
        by_reader = {reader: read(path, version) for reader, read in readers.READERS.items()}
        assert all(rows == by_reader["delta-rs"] for rows in by_reader.values()), (version, by_reader)
    for version in range(1, head + 1):
        feed = readers.weighed(readers.feed_by_delta_rs(path, version))
        assert readers.weighed(readers.feed_by_polars(path, version)) == feed
        assert readers.feed_by_duckdb(path, version) == feed
