"""Commits by sqlrun and by the engine's library, as a profile's `delta_writer` sets: the tables are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support import shops
from tests.values import playing


def writers(path: str) -> list[str]:
    """Return the writer of each commit of a table, the oldest first, without versions."""
    newest = delta_table.head(path)
    assert newest is not None
    infos = (a["commitInfo"] for v in range(1, newest + 1) for a in delta_table.actions(path, v) if "commitInfo" in a)
    return [str(info.get("engineInfo", "")).partition(":")[0] for info in infos]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("first", ["sqlrun", "library"])
def test_writers_alternate(tmp_path: Path, way: str, first: str) -> None:
    """One tick each, with hostile values and maintenance between: every table equals its query."""
    play = playing.play(tmp_path, 11)
    for number in range(4):
        play.site.engine = DuckDBEngine(own_commits=(number % 2 == 0) == (first == "sqlrun"))
        play.tick(12)
        play.require_true()
        if number == 1:
            play.maintain()

    published = play.site.ledger.read().published
    assert published is not None
    for name in ("sales", "by_city"):
        found = writers(f"{play.site.warehouse}/{published.tables[name].path}")
        assert {"sqlrun", "delta-rs"} <= set(found), (name, found)
    play.require_shown()
    del way


@pytest.mark.parametrize("writer", ["sqlrun", "library"])
def test_the_profile_sets_the_writer(tmp_path: Path, writer: str) -> None:
    root = shops.project(tmp_path)
    (root / "profiles/local.yml").write_text(f"engine: duckdb\nwarehouse: warehouse\ndelta_writer: {writer}\n")
    site = shops.Site(root, DuckDBEngine())
    for number in range(2):
        shops.send(site, f"{number}.jsonl", *(shops.sale(f"{number}-{n}", amount="2.50") for n in range(3)))
        shops.run(site, "build")

    published = site.ledger.read().published
    assert published is not None
    for path in (published.tables["by_shop"].path, "_sqlrun/ledger", "_sqlrun/intake"):
        found = writers(f"{site.warehouse}/{path}")
        assert found[-1] == {"sqlrun": "sqlrun", "library": "delta-rs"}[writer], path
    assert shops.by_shop(site) == shops.sums(*(shops.sale(str(n), amount="2.50") for n in range(6)))
    shops.run(site, "verify")


def test_an_unknown_writer_is_refused(tmp_path: Path) -> None:
    root = shops.project(tmp_path)
    (root / "profiles/local.yml").write_text("engine: duckdb\nwarehouse: warehouse\ndelta_writer: delta-rs\n")

    output = shops.run(shops.Site(root, DuckDBEngine()), "build", code=2)

    assert "SR131" in output and "Writers: sqlrun, library." in output
