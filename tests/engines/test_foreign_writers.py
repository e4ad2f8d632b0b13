"""Another writer at any table, at any moment: rejected, rolled back or harmless, reported; tables are correct after."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sqlrun.engine_api import Landing, Written
from sqlrun.engines.delta.heads import Heads
from sqlrun.errors import UsageError
from sqlrun.operations import doctor
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
    """Return the first parameter for quick runs; the others take minutes in all."""
    return [first, *(pytest.param(other, marks=pytest.mark.long) for other in others)]


def first_of(names: dict[str, Any], *first: str) -> list[Any]:
    return [name if name in first else pytest.param(name, marks=pytest.mark.long) for name in names]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two published ticks, built once."""
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
    """Let another writer change a table; return the new version."""
    opened = DeltaTable(path_of(site, table))
    {**CHANGES, **HARMLESS}[how](opened)
    return DeltaTable(path_of(site, table)).version()


def taken_back(site: Site, table: str, version: int, said: str) -> None:
    assert f"SR741 {table}: " in said and f"version {version} (" in said and "delta-rs" in said, said
    assert "power failure" not in said


@pytest.mark.long
@pytest.mark.parametrize("how", first_of(CHANGES, "delete", "reshape"))
def test_a_foreign_change_to_a_landing_table_is_refused_until_rolled_back(site: Site, how: str) -> None:
    """Deleted lines would never be read again: no tick writes anything before a user decides."""
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


@pytest.mark.long
@pytest.mark.parametrize("how", first_of(CHANGES, "delete", "reshape"))
def test_other_tables_return_to_the_published_version(site: Site, how: str) -> None:
    """All kinds at once, each reported separately."""
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
def test_entries_in_a_checkpoint_are_restored(site: Site, how: str) -> None:
    """Its entries have statistics and partitions in the table's own types; a commit has them as text."""
    for name in (*KINDS, "ledger"):
        DeltaTable(path_of(site, name)).create_checkpoint()
        change(site, name, how)
    said = command(site, "doctor", code=1)
    assert "SR740 ledger" in said
    assert "SR741 ledger" in command(site, "doctor", "--repair")
    arrive(site, 2)
    assert "SR74" not in build(site, 2)
    true(site, 2, 9)


@pytest.mark.long
@pytest.mark.parametrize("how", first_of(HARMLESS, "optimize"))
def test_commits_that_only_move_rows_are_harmless(site: Site, how: str) -> None:
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
def test_lines_landed_around_a_foreign_commit_stay(site: Site, how: str, kept: str) -> None:
    """A tick died after landing, before or after another writer's commit: its lines are in the next tick, once."""
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
def test_a_race_with_a_landing_publishes_nothing_and_keeps_the_lines(site: Site, how: str) -> None:
    """Spark's stream continues from any commit in between: a landing may end at a version with foreign commits."""
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


@pytest.mark.parametrize("name", ["stg_lines", "fct_slots"])
def test_a_commit_after_the_check_is_never_published(site: Site, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick takes its tables' newest versions from the check at its start."""
    arrive(site, 2)
    real = doctor.before_tick

    def checked(*arguments: Any) -> Heads:
        heads = real(*arguments)
        assert heads.of(path_of(site, name)) == change(site, name, "delete") - 1
        return heads

    with monkeypatch.context() as patched:
        patched.setattr(doctor, "before_tick", checked)
        result = site.tick(at(2))
    assert not result.published and any("another writer" in node.message for node in result.nodes)
    if name == "stg_lines":
        assert "SR740 stg_lines" in build(site, 2, code=2)
        command(site, "doctor", "--repair")
    assert name == "stg_lines" or f"SR741 {name}" in build(site, 2)
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
def test_foreign_changes_to_deciding_system_tables_are_refused_until_rolled_back(
    site: Site, book: str, how: str
) -> None:
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
def test_other_system_tables_are_rolled_back(site: Site, how: str) -> None:
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


@pytest.mark.long
def test_a_vacuum_of_published_files_is_reported_with_a_way_out(site: Site) -> None:
    """A tick had replaced the files and died; then only the published tick still needs them."""
    arrive(site, 2)
    cut_short(site, 2)
    change(site, "fct_slots", "vacuum")
    said = build(site, 2, code=1)
    assert "fct_slots" in said and "--full-refresh --select fct_slots+" in said, said
    build(site, 2, "--full-refresh", "--select", "fct_slots+")
    build(site, 2)
    true(site, 2, 9)


@pytest.mark.long
def test_an_environment_neither_rolls_back_nor_reads_foreign_changes_in_production(site: Site) -> None:
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


def test_maintenance_reports_why_it_waits(site: Site) -> None:
    change(site, "fct_slots", "delete")
    said = command(site, "vacuum", code=2)
    assert "fct_slots" in said and "another writer" in said and "DELETE" in said, said
    build(site, 2)
    command(site, "vacuum")
    true(site, 2, 6)


@pytest.mark.long
def test_foreign_changes_read_by_an_earlier_version_are_found(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a version of sqlrun that didn't check: the doctor reports the tick with missing lines, and what to do."""
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
