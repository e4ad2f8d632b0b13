"""Another writer at any table, at any moment: refused, taken back or harmless, told as it is; and true afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sqlrun.engine_api import Landing, Written
from sqlrun.errors import UsageError
from tests.support import foreign_writers as others
from tests.support.foreign_writers import (
    BOOKS,
    CHANGES,
    HARMLESS,
    KINDS,
    arrive,
    at,
    build,
    command,
    cut_short,
    path_of,
    true,
)
from tests.support.projects import Site

pytestmark = pytest.mark.slow


def some(first: str, *others: str) -> list[Any]:
    """Try the first; the others take minutes all in all."""
    return [first, *(pytest.param(other, marks=pytest.mark.long) for other in others)]


def first_of(names: dict[str, Any], *first: str) -> list[Any]:
    return [name if name in first else pytest.param(name, marks=pytest.mark.long) for name in names]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two published ticks, made once."""
    folder = tmp_path_factory.mktemp("foreign") / "shops"
    site = others.opened(others.project(folder))
    for number in range(2):
        arrive(site, number)
        build(site, number)
    site.engine.close()
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Iterator[Site]:
    shutil.copytree(made, tmp_path / "shops")
    opened = others.opened(tmp_path / "shops")
    yield opened
    opened.engine.close()


def change(site: Site, table: str, how: str) -> int:
    """Have another writer change a table; give the version that it made."""
    opened = DeltaTable(path_of(site, table))
    {**CHANGES, **HARMLESS}[how](opened)
    return DeltaTable(path_of(site, table)).version()


def taken_back(site: Site, table: str, version: int, said: str) -> None:
    assert f"SR741 {table}: " in said and f"version {version} (" in said and "delta-rs" in said, said
    assert "power failure" not in said


@pytest.mark.parametrize("how", first_of(CHANGES, "delete", "reshape"))
def test_a_landing_table_that_another_has_changed_is_refused_until_that_is_taken_back(site: Site, how: str) -> None:
    """Lines that left would never be read again: nothing is written, in any tick, before somebody decides."""
    version = change(site, "stg_lines", how)
    arrive(site, 2)
    for _ in range(2):
        said = build(site, 2, code=2)
        assert "SR740 stg_lines: another writer changed stg_lines/" in said and f"version {version} (" in said, said
        assert "delta-rs" in said and "--repair" in said and "power failure" not in said
    assert "SR740" in command(site, "doctor", code=1)
    assert "SR741" in command(site, "doctor", "--repair")

    assert "SR74" not in build(site, 2)
    true(site, 2, 9)
    assert "SR74" not in build(site, 3)
    true(site, 3, 9)


@pytest.mark.parametrize("how", first_of(CHANGES, "delete", "reshape"))
def test_other_tables_go_back_to_what_was_published(site: Site, how: str) -> None:
    """All kinds at once, each told by itself."""
    tables = [name for name in KINDS if name != "stg_lines"]
    versions = {name: change(site, name, how) for name in tables}
    arrive(site, 2)
    said = build(site, 2)
    for name, version in versions.items():
        taken_back(site, name, version, said)

    true(site, 2, 9)
    assert "SR74" not in build(site, 3)
    true(site, 3, 9)


@pytest.mark.parametrize("how", some("delete", "reshape"))
def test_what_a_checkpoint_holds_comes_back(site: Site, how: str) -> None:
    """Its entries of files have statistics and partitions of the table's own types, which a commit has as text."""
    for name in (*KINDS, "ledger"):
        DeltaTable(path_of(site, name)).create_checkpoint()
        change(site, name, how)
    said = command(site, "doctor", code=1)
    assert "SR740 ledger" in said
    assert "SR741 ledger" in command(site, "doctor", "--repair")
    arrive(site, 2)
    assert "SR74" not in build(site, 2)
    true(site, 2, 9)


@pytest.mark.parametrize("how", first_of(HARMLESS, "optimize"))
def test_what_only_moves_rows_is_nobodys_business(site: Site, how: str) -> None:
    for name in (*KINDS, "ledger", "receipts"):
        change(site, name, how)
    arrive(site, 2)
    assert "SR74" not in build(site, 2)
    true(site, 2, 9)
    for name in KINDS:
        change(site, name, how)
    arrive(site, 3)
    build(site, 3)
    true(site, 3, 12)


@pytest.mark.parametrize("how", some("delete", *(n for n in CHANGES if n not in ("delete", "restore"))))
@pytest.mark.parametrize("kept", ["before", "after"])
def test_lines_that_landed_around_it_stay(site: Site, how: str, kept: str) -> None:
    """A tick died after landing, before or after another writer came: its lines are the next tick's, once."""
    arrive(site, 2)
    if kept == "before":
        cut_short(site, 2)
    change(site, "stg_lines", how)
    if kept == "after":
        with pytest.raises(UsageError, match="SR740"):
            cut_short(site, 2)
    arrive(site, 3)
    assert "SR740" in build(site, 3, code=2)
    command(site, "doctor", "--repair")
    build(site, 3)

    true(site, 3, 12)


@pytest.mark.parametrize("how", some("delete", "insert", "update"))
def test_of_a_race_with_a_landing_nothing_is_published_and_the_lines_stay(site: Site, how: str) -> None:
    """Spark's stream goes on from whatever came between: a landing may end at a version with more than its own."""
    arrive(site, 2)
    real = site.engine.land

    def land(landing: Landing) -> Written:
        written = real(landing)
        return replace(written, version=change(site, "stg_lines", how))

    site.engine.land = land  # type: ignore[method-assign]
    result = site.tick(at(2))
    assert not result.published and any("SR740 stg_lines" in node.message for node in result.nodes)
    site.engine.land = real  # type: ignore[method-assign]
    assert "SR740" in build(site, 2, code=2)
    command(site, "doctor", "--repair")
    build(site, 2)

    true(site, 2, 9)


@pytest.mark.parametrize("how", some("delete", "insert", "overwrite"))
@pytest.mark.parametrize("name", some("fct_slots", "all_lines", "shops"))
def test_a_commit_between_pin_and_publish_is_never_published(site: Site, name: str, how: str) -> None:
    arrive(site, 2)
    real = site.engine.write

    def write(request: object) -> object:
        written = real(request)  # type: ignore[arg-type]
        if request.table.name == name:  # type: ignore[attr-defined]
            change(site, name, how)
        return written

    site.engine.write = write  # type: ignore[method-assign,assignment]
    site.tick(at(2))
    site.engine.write = real  # type: ignore[method-assign]
    arrive(site, 3)
    said = build(site, 3)
    assert name == "shops" or f"SR741 {name}" in said
    true(site, 3, 12)


@pytest.mark.parametrize("how", some("delete", "update", "insert"))
@pytest.mark.parametrize("book", ["ledger", "quarantine"])
def test_books_that_decide_are_refused_until_that_is_taken_back(site: Site, book: str, how: str) -> None:
    if book == "quarantine":
        from sqlrun.land import quarantine_log

        row = {"id": "a", "reason": "", "lines": 1}
        entries = quarantine_log.entries("discard", "stg_lines", "stg_lines/x", [row], at(2))
        quarantine_log.append(site.warehouse, "", entries)
    version = change(site, book, how)
    said = build(site, 2, code=2)
    assert f"SR740 {book}: another writer changed _sqlrun/{book}" in said and f"version {version} (" in said
    assert f"SR740 {book}" in command(site, "doctor", code=1)
    assert f"SR741 {book}" in command(site, "doctor", "--repair")
    arrive(site, 2)
    build(site, 2)

    true(site, 2, 9)


@pytest.mark.parametrize("how", some("delete", "update", "insert", "overwrite"))
def test_books_that_decide_nothing_go_back(site: Site, how: str) -> None:
    there = [book for book in BOOKS if Path(path_of(site, book)).exists()]
    before = {book: sorted(map(str, DeltaTable(path_of(site, book)).to_pyarrow_table().to_pylist())) for book in there}
    for book in there:
        change(site, book, how)
    said = build(site, 1)
    assert there and all(f"SR741 {book}: another writer changed _sqlrun/{book}" in said for book in there), said
    for book in there:
        rows = map(str, DeltaTable(path_of(site, book)).to_pyarrow_table().to_pylist())
        assert set(before[book]) <= set(rows)
    assert "SR74" not in build(site, 2)


def test_a_vacuum_that_took_what_is_published_is_told_with_a_way_out(site: Site) -> None:
    """A tick had replaced the files and died; then nothing but the published tick still needs them."""
    arrive(site, 2)
    cut_short(site, 2)
    change(site, "fct_slots", "vacuum")
    said = build(site, 2, code=1)
    assert "fct_slots" in said and "--full-refresh --select fct_slots+" in said, said
    build(site, 2, "--full-refresh", "--select", "fct_slots+")
    build(site, 2)
    true(site, 2, 9)


def test_an_environment_takes_nothing_of_productions_back_and_reads_none_of_it(site: Site) -> None:
    build(site, 1, "--env", "dev")
    change(site, "fct_slots", "delete")
    change(site, "stg_lines", "delete")
    assert "SR74" not in build(site, 1, "--env", "dev")
    assert command(site, "verify", "--env", "dev")
    arrive(site, 2)
    assert "SR740" in build(site, 2, code=2)
    command(site, "doctor", "--repair")
    build(site, 2)
    true(site, 2, 9)


def test_upkeep_says_why_it_waits(site: Site) -> None:
    change(site, "fct_slots", "delete")
    said = command(site, "maintain", code=2)
    assert "fct_slots" in said and "another writer" in said and "DELETE" in said, said
    build(site, 2)
    command(site, "maintain")
    true(site, 2, 6)


@pytest.mark.long
def test_what_was_taken_in_before_is_found(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a sqlrun that didn't look: the doctor tells which tick's lines are short, and what to do."""
    from sqlrun.engines.delta import foreign_commits

    change(site, "stg_lines", "delete")
    with monkeypatch.context() as blind:
        blind.setattr(foreign_commits, "of", lambda *_: None)
        arrive(site, 2)
        build(site, 2)
        build(site, 3)
    assert "SR74" not in build(site, 4)
    said = command(site, "doctor", code=1)
    assert "SR742 stg_lines" in said and "--full-refresh --select stg_lines+" in said
    assert "SR742 stg_lines" in command(site, "doctor", "--repair", code=1)
    build(site, 4, "--full-refresh", "--select", "stg_lines+")
    build(site, 4)
    true(site, 4, 9)
