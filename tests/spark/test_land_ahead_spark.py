"""What comes between two ticks is landed before the second by Spark, too; crashes there lose and double nothing."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.land import land
from sqlrun.sources import checkpoint as source_checkpoint
from sqlrun.sources import stream_checkpoint
from tests.support import shops
from tests.support.alternating import auto
from tests.support.projects import Site, now
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("unchecked"), pytest.mark.long]
ALONE = {"by_shop": "hash() runs on Spark only"}


def send(site: Site, name: str, *ids: str, shop: str = "ada") -> None:
    """Let a file arrive that nobody has touched for long."""
    shops.send(site, name, *(shops.sale(each, shop) for each in ids))
    os.utime(site.orders / name, (1_700_000_000, 1_700_000_000))


def checkpoint(site: Site) -> Path:
    return Path(site.warehouse) / source_checkpoint.path_of(site.published[-1].plan.tables[shops.NAME].path)


def head(site: Site) -> int | None:
    return site.engine.head(site.published[-1].plan.tables[shops.NAME].spec.path)


def tick_counts(site: Site) -> dict[str, tuple[str, int, int]]:
    """Tick, and tell what the tick says of its models."""
    result = site.tick(START + FIVE)
    assert result.published
    assert differences(site, START + FIVE) == {}
    return {node.name: (node.status, node.rows, node.quarantined) for node in result.nodes}


def begun(folder: Path, engine: Engine) -> Site:
    made = shops.site(folder, engine)
    send(made, "0.jsonl", "a", "b")
    assert made.tick(START).published
    return made


@pytest.fixture
def plain(tmp_path: Path) -> dict[str, tuple[str, int, int]]:
    """What a tick says that lands all by itself, on DuckDB."""
    made = begun(tmp_path / "plain", DuckDBEngine())
    arrive(made)
    send(made, "2.jsonl", "f")
    return tick_counts(made)


def arrive(site: Site) -> None:
    send(site, "1.jsonl", "c", "d")
    send(site, "bad.jsonl", "e", shop="nobody")


@pytest.mark.parametrize(
    ("given", "lands"),
    [(None, "spark"), ({}, "duckdb"), ({"lands": "spark"}, "spark"), ({"spark_only_models": ALONE}, "duckdb")],
    ids=["spark", "auto", "auto, Spark lands", "auto, a model for Spark alone"],
)
def test_the_tick_is_the_same_and_lands_nothing_twice(
    engine: SparkEngine, tmp_path: Path, plain: Any, given: dict[str, Any] | None, lands: str
) -> None:
    site = begun(tmp_path / "ahead", engine if given is None else auto(engine, **given))
    arrive(site)
    before = head(site)
    land.ahead(site.published[-1], now())
    assert head(site) == (before or 0) + 1
    assert source_checkpoint.began(str(checkpoint(site))) == lands
    send(site, "2.jsonl", "f")

    assert tick_counts(site) == plain
    assert Counter(row["id"] for row in site.rows(shops.NAME)) == Counter("abcdf")


@pytest.mark.parametrize("died", ["after all", "before Spark's own note", "before Delta's commit"])
def test_a_build_that_dies_at_it_loses_and_doubles_nothing(
    engine: SparkEngine, tmp_path: Path, plain: Any, died: str
) -> None:
    """A later process finds a batch that has landed, one that Spark's checkpoint lacks, or one that was but planned."""
    site = begun(tmp_path / "ahead", engine)
    arrive(site)
    land.ahead(site.published[-1], now())
    if died != "after all":
        number = max(stream_checkpoint.numbers(str(checkpoint(site)), "commits"))
        for name in (str(number), f".{number}.crc"):
            (checkpoint(site) / "commits" / name).unlink(missing_ok=True)
    if died == "before Delta's commit":
        log = Path(site.published[-1].plan.tables[shops.NAME].spec.path) / "_delta_log"
        for file in log.glob(f"*{head(site):020}.*"):
            file.unlink()
    later = Site(site.root, engine)
    send(later, "2.jsonl", "f")

    assert tick_counts(later) == plain
    assert Counter(row["id"] for row in later.rows(shops.NAME)) == Counter("abcdf")
