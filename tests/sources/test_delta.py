"""Delta tables that others write as sources: after each tick, every model equals its query over the version it read."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sqlrun.events import TickResult
from sqlrun.operations.verify import verify
from sqlrun.publish.reader import tick_of
from tests.support.lakes import FEED, SCHEMA, START, VECTORS, Lake, Row, project, some_rows
from tests.support.projects import READER, Site

FIVE = timedelta(minutes=5)
KINDS = {
    "plain": ({}, []),
    "feed": (FEED, []),
    "partitioned": ({}, ["shop"]),
    "partitioned feed": (FEED, ["shop"]),
    "vectors": (VECTORS, []),
    "vectors and feed": (VECTORS | FEED, []),
}


def lake_of(folder: Path, kind: str = "plain") -> Lake:
    options, partitions = KINDS[kind]
    lake = Lake(str(folder / "lake" / "orders"), dict(options), list(partitions))
    lake.create()
    return lake


def row(number: int, shop: str | None = "a", amount: int | None = 5, minutes: int = 0) -> Row:
    return (number, shop, amount, START - timedelta(minutes=minutes))


def copied(site: Site) -> Counter[Row]:
    return Counter(tuple(one[name] for name in SCHEMA.names) for one in site.rows("copied"))  # type: ignore[misc]


def wrong(site: Site) -> list[str]:
    """Return the models that differ from their queries."""
    published = tick_of(site.ledger)
    names = tuple(m.name for m in site.prepared.workspace.tables)
    verdicts = verify(site.prepared.workspace, site.warehouse, published, names, 3)
    return [f"{verdict.model}: {verdict.samples}" for verdict in verdicts if not verdict.ok]


def tick(site: Site, number: int) -> TickResult:
    result = site.tick(START + number * FIVE)
    assert result.published, [(node.name, node.message) for node in result.nodes if node.message]
    return result


def change(lake: Lake, draw: random.Random, now: datetime) -> str:
    """Make one random commit; return what it was."""
    numbers = sorted({one[0] for one in lake.rows})
    kinds = ["append", "append", "overwrite", "optimize", "vacuum", "feed"]
    earlier = sorted(version for version in lake.versions if version < lake.table.version())
    kinds += ["restore", "restore"] if earlier else []
    kinds += ["delete", "update", "merge", "mark"] if numbers else []
    what = draw.choice(kinds)
    match what:
        case "append":
            lake.append(some_rows(draw, lake, now))
        case "overwrite":
            kept = [one for one in lake.rows.elements() if draw.random() < 0.8]
            lake.overwrite([*kept, *some_rows(draw, lake, now)])
        case "delete":
            lake.delete(draw.choice(numbers))
        case "update":
            lake.update(draw.choice(numbers), draw.choice((1, 8)))
        case "merge":
            old = [one for one in lake.rows if one[0] == draw.choice(numbers)][:1]
            lake.merge([*((one[0], one[1], 3, now) for one in old), *set(some_rows(draw, lake, now, 2))])
        case "optimize":
            lake.optimize()
        case "restore":
            lake.restore(draw.choice(earlier))
        case "vacuum":
            lake.vacuum()
        case "feed":
            lake.switch_feed(draw.random() < 0.5)
        case "mark":
            if "delta.enableDeletionVectors" not in lake.options:
                return change(lake, draw, now)
            lake.mark(draw)
    return what


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("seed", range(2))
def test_random_commits_between_ticks(tmp_path: Path, kind: str, seed: int) -> None:
    """No commit of any kind makes a model differ from its query over the version that the tick read."""
    draw = random.Random(f"{kind}{seed}")
    lake = lake_of(tmp_path, kind)
    lake.append(some_rows(draw, lake, START, 8))
    site = Site(project(tmp_path), READER)
    done: list[str] = []
    for number in range(10):
        tick(site, number)
        assert copied(site) == lake.rows, done
        assert not wrong(site), done
        now = START + (number + 1) * FIVE
        if draw.random() < 0.06:
            lake.create()
            done.append("create")
        done += [change(lake, draw, now) for _ in range(draw.randint(0, 3))]
