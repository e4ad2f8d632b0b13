"""A project that is moved goes on landing with Spark, whose checkpoint names files by whole paths."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.events import TickResult
from sqlrun.sources import checkpoint as source_checkpoint
from sqlrun.sources import stream_checkpoint
from tests.support import shops
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("unchecked")]


def checkpoint(site: Site) -> Path:
    return Path(site.warehouse) / source_checkpoint.path_of(site.published[-1].plan.tables[shops.NAME].path)


def sent(site: Site, number: int) -> TickResult:
    """Let a file of one sale arrive, and tick."""
    name = f"{number} %.jsonl"
    shops.send(site, name, shops.sale(str(number)))
    os.utime(site.orders / name, (1_700_000_000, 1_700_000_000))
    result = site.tick(START + number * FIVE)
    assert result.published, [node.message for node in result.nodes]
    assert differences(site, START + number * FIVE) == {}
    return result


def ids(site: Site) -> Counter[str]:
    return Counter(row["id"] for row in site.rows(shops.NAME))


def moved(site: Site, folder: Path) -> Site:
    return Site(site.root.rename(folder), site.engine)


def test_only_what_is_new_lands(engine: SparkEngine, tmp_path: Path) -> None:
    """There, and back again; also where the newest batch had not been noted as done."""
    site = shops.site(tmp_path / "a place", engine)
    sent(site, 0)
    sent(site, 1)
    batch = max(stream_checkpoint.numbers(str(checkpoint(site)), "commits"))
    (checkpoint(site) / "commits" / str(batch)).unlink()
    (checkpoint(site) / "commits" / f".{batch}.crc").unlink()
    there = moved(site, tmp_path / "höher, 100% sure")
    (landing,) = (node for node in sent(there, 2).nodes if node.name == shops.NAME)
    assert (landing.status, landing.rows) == ("success", 1)
    assert ids(there) == Counter("012")
    back = moved(there, tmp_path / "a place")
    sent(back, 3)
    assert ids(back) == Counter("0123")
