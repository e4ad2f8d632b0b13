"""Dropped lines on Spark: the same numbers as on DuckDB, by Structured Streaming and in planned batches."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from random import Random

import pytest

from sqlrun.engine_api import Engine, Landing, Relation, TableSpec, Written
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.incremental.landing import query as landing_query
from sqlrun.project import BLANK_LINE, FILTERED
from sqlrun.source_api import Frame, Positions
from sqlrun.sources.folder import COLUMNS, Folder
from tests.land import test_drops as drops
from tests.support import shops
from tests.support.projects import Site

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
AT = datetime(2026, 1, 12, tzinfo=timezone.utc)


class Planned(Folder):
    """A folder that lands in planned batches on Spark too."""

    @property
    def streaming(self) -> None:  # type: ignore[override]
        return None

    def frame(self, parts: Positions) -> Frame:
        file = next(one for one in COLUMNS if one.endswith(" as file"))
        columns = (*COLUMNS, file.replace(" as file", " as part"))
        return Frame("text", {"path": self.location}, columns, ((BLANK_LINE, "trim(both ' \\t' from value) = ''"),))


def landed(made: Site, engine: Engine, source: Folder, name: str) -> tuple[Written, Counter[str]]:
    """Land a project's lines; return what the engine reports, and the rows by their reason."""
    model = made.prepared.workspace.model(shops.NAME)
    assert model.source is not None
    rules = made.prepared.workspace.rules[model.name]
    query = landing_query.query(model.own, model.source, rules, engine.dialect, AT, with_dropped=True)
    columns = landing_query.columns_of(model.own)
    table = TableSpec(model.name, str(made.root / name), columns)
    reasons = landing_query.drops(model.own, model.source)
    engine.create(table)
    written = engine.land(Landing(table, source, str(made.root / f"{name}_done"), query, name, drops=reasons))
    held = Relation("held", table.path, columns, "new", version=written.version)
    rows = DuckDBEngine().query("select coalesce(_reason, '') as reason from held", (held,)).to_pylist()
    return written, Counter(row["reason"] for row in rows)


def test_both_engines_count_the_same(engine: SparkEngine, tmp_path: Path) -> None:
    made = drops.site(tmp_path)
    lines = list(drops.random_lines(Random(7), 300))
    for number in range(3):
        shops.send(made, f"{number}.jsonl", *lines[number * 100 : number * 100 + 100])
    total = Counter(map(drops.expected, lines))
    dropped = {reason: total[reason] for reason in drops.DROPPED}
    assert min(dropped.values()) > 0

    folder = str(made.orders)
    for name, one, source in (
        ("duckdb", DuckDBEngine(), Folder(folder)),
        ("stream", engine, Folder(folder)),
        ("planned", engine, Planned(folder)),
    ):
        written, rows = landed(made, one, source, name)
        assert written.counts.lines == 300, name
        assert written.dropped == dropped, name
        assert rows == total - Counter(dropped), name
        samples = written.counts.samples
        assert {sample.reason for sample in samples} == {drops.ANOTHER, drops.LARGE, FILTERED}, name
        assert all(drops.expected(sample.text) == sample.reason for sample in samples), name
