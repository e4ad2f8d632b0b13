"""A Delta table that another program writes, with the rows that it must have, and a project that reads it."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from sqlrun.engines.delta import deletion_vectors

# A row: id, shop, amount, at. Copies of a row are allowed.
Row = tuple[int, str | None, int | None, datetime]
START = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("shop", pa.string()),
        pa.field("amount", pa.int64()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
SHOPS = ("a", "b", "c", None)

SOURCES = """version: 1
sources:
  - name: lake
    description: Tables that other programs write.
    tables:
      - name: orders
        description: Orders.
        format: delta
        path: ../lake/orders
        columns:
          - {name: id, data_type: bigint, description: Number of the order.}
          - {name: shop, data_type: string, description: Shop.}
          - {name: amount, data_type: bigint, description: Amount.}
          - {name: at, data_type: timestamp, description: Time of the order.}
"""
ORDERS = "{{ source('lake', 'orders') }}"
# Models by name: the query, the grain, and the columns with their types.
MODELS: dict[str, tuple[str, str, str]] = {
    "copied": (f"select id, shop, amount, at from {ORDERS}", "", "id bigint, shop string, amount bigint, at timestamp"),
    "totals": (
        f"select shop, sum(amount) as total, count(*) as n from {ORDERS} group by shop",
        "shop",
        "shop string, total bigint, n bigint",
    ),
    "extremes": (
        f"select shop, min(amount) as low, max(at) as last from {ORDERS} group by shop",
        "shop",
        "shop string, low bigint, last timestamp",
    ),
    "named": (
        f"select s.name, sum(o.amount) as total from {ORDERS} o join {{{{ ref('shops') }}}} s on o.shop = s.shop "
        "group by s.name",
        "name",
        "name string, total bigint",
    ),
    "best": (
        f"select shop, id, amount, n from (select shop, id, amount, count(*) as n from {ORDERS} "
        "group by shop, id, amount) t "
        "qualify row_number() over (partition by shop order by amount desc, id) <= 2",
        "shop, id, amount",
        "shop string, id bigint, amount bigint, n bigint",
    ),
    "recent": (
        f"select shop, count(*) as n from {ORDERS} where at > current_timestamp() - interval 1 hour "
        "and at <= current_timestamp() group by shop",
        "shop",
        "shop string, n bigint",
    ),
    "viewed": ("select shop, n from {{ ref('large') }}", "shop", "shop string, n bigint"),
    "above": ("select count(*) as n, sum(n) as orders from {{ ref('totals') }}", "", "n bigint, orders bigint"),
}
VIEW = f"{{{{ config(materialized='view') }}}}\nselect shop, count(*) as n from {ORDERS} where amount > 5 group by shop"


def project(folder: Path, models: Iterable[str] = tuple(MODELS)) -> Path:
    """Write a project `shop` that reads `lake/orders` beside it."""
    root = folder / "shop"
    (root / "models").mkdir(parents=True)
    (root / "seeds").mkdir()
    (root / "pyproject.toml").write_text('[tool.sqlrun]\nname = "shop"\n')
    (root / "models" / "_sources.yml").write_text(SOURCES)
    (root / "seeds" / "shops.csv").write_text("shop,name\na,Anna\nb,Berta\n")
    contract(root / "seeds" / "shops.yml", "shops", "shop", "shop string, name string", "seeds")
    chosen = set(models)
    for name in chosen:
        add_model(root, name, *MODELS[name])
    if "viewed" in chosen:
        add_model(root, "large", VIEW, "", "shop string, n bigint")
    return root


def add_model(root: Path, name: str, sql: str, grain: str, columns: str) -> None:
    """Write a model and its contract."""
    (root / "models" / f"{name}.sql").write_text(sql + "\n")
    contract(root / "models" / f"{name}.yml", name, grain, columns, "models")


def contract(file: Path, name: str, grain: str, columns: str, key: str) -> None:
    """Write the contract of a model or a seed."""
    lines = ["version: 1", f"{key}:", f"  - name: {name}", f"    description: {name}."]
    lines += [f"    grain: [{grain}]"] if grain else []
    lines += ["    columns:"]
    for column in columns.split(", "):
        title, kind = column.split(" ", 1)
        lines.append(f"      - {{name: {title}, data_type: {kind}, description: {title}.}}")
    file.write_text("\n".join(lines) + "\n")


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Return rows as Arrow."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@dataclass
class Lake:
    """The table `orders`, its rows, and those of each version."""

    path: str
    options: dict[str, str] = field(default_factory=dict)
    partitions: list[str] = field(default_factory=list)
    rows: Counter[Row] = field(default_factory=Counter)
    versions: dict[int, Counter[Row]] = field(default_factory=dict)
    number: int = 0

    def create(self) -> None:
        """Create the empty table; an existing one is deleted first."""
        shutil.rmtree(self.path, ignore_errors=True)
        DeltaTable.create(self.path, SCHEMA, partition_by=self.partitions or None, configuration=self.options)
        self.versions.clear()
        self._is(Counter())

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def _is(self, rows: Counter[Row]) -> None:
        self.rows = +rows
        self.versions[self.table.version()] = Counter(self.rows)

    def append(self, rows: Iterable[Row]) -> None:
        """Append rows in one commit."""
        some = list(rows)
        write_deltalake(self.path, table_of(some), mode="append")
        self._is(self.rows + Counter(some))

    def overwrite(self, rows: Iterable[Row]) -> None:
        """Replace all rows in one commit."""
        some = list(rows)
        write_deltalake(self.path, table_of(some), mode="overwrite")
        self._is(Counter(some))

    def delete(self, number: int) -> None:
        """Delete the rows of an id."""
        self.table.delete(f"id = {number}")
        self._is(Counter({row: count for row, count in self.rows.items() if row[0] != number}))

    def update(self, number: int, amount: int) -> None:
        """Change the amount of an id."""
        self.table.update(updates={"amount": str(amount)}, predicate=f"id = {number}")
        found: Counter[Row] = Counter()
        for row, count in self.rows.items():
            found[(row[0], row[1], amount, row[3]) if row[0] == number else row] += count
        self._is(found)

    def merge(self, rows: Iterable[Row]) -> None:
        """Upsert rows by id; ids are unique among `rows`."""
        some = {row[0]: row for row in rows}
        merger = self.table.merge(table_of(some.values()), "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        found: Counter[Row] = Counter()
        for row, count in self.rows.items():
            found[some.get(row[0], row)] += count
        known = {row[0] for row in self.rows}
        found.update(row for row in some.values() if row[0] not in known)
        self._is(found)

    def optimize(self) -> None:
        """Compact the files."""
        self.table.optimize.compact()
        self._is(self.rows)

    def restore(self, version: int) -> None:
        """Restore an earlier version."""
        self.table.restore(version)
        self._is(self.versions[version])

    def vacuum(self) -> None:
        """Delete all files that the newest version doesn't need."""
        self.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        self._is(self.rows)
        self.versions = {self.table.version(): Counter(self.rows)}

    def switch_feed(self, on: bool) -> None:
        """Switch the change feed on or off for later commits."""
        self.table.alter.set_table_properties({"delta.enableChangeDataFeed": str(on).lower()})
        self._is(self.rows)

    def mark_one(self) -> None:
        """Delete half of the rows of the smallest file."""
        self._mark(min(self._files(), key=lambda file: int(file["size"])))

    def mark(self, draw: random.Random) -> None:
        """Delete half of the rows of some file."""
        self._mark(draw.choice(sorted(self._files(), key=lambda file: str(file["path"]))))

    def _mark(self, entry: dict[str, Any]) -> None:
        """Delete the first half of a file's rows by a deletion vector, as Spark does; the table allows them."""
        import pyarrow.parquet as pq

        table = self.table
        stored = pq.read_table(f"{self.path}/{entry['path']}", schema=SCHEMA, partitioning=None).to_pylist()
        gone = deletion_vectors.rows_of(self.path, entry)
        live = [number for number in range(len(stored)) if number not in gone]
        lost = live[: max(1, len(live) // 2)]
        vector = deletion_vectors.descriptor([*gone, *lost])
        removed = {"path": entry["path"], "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True,
                   "partitionValues": entry["partitionValues"], "size": entry["size"]}  # fmt: skip
        if "deletionVector" in entry:
            removed["deletionVector"] = entry["deletionVector"]
        actions = [
            {"commitInfo": {"operation": "DELETE", "engineInfo": "another writer"}},
            {"remove": removed},
            {"add": {**entry, "deletionVector": vector, "dataChange": True}},
        ]
        log = Path(self.path) / "_delta_log" / f"{table.version() + 1:020d}.json"
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
        left = Counter(tuple(stored[number].values()) for number in lost)
        self._is(self.rows - left)  # type: ignore[operator]

    def _files(self) -> list[dict[str, Any]]:
        from sqlrun.engines.delta import state

        return [dict(entry) for entry in state.at(self.path, self.table.version()).files.values()]


def some_rows(draw: random.Random, lake: Lake, now: datetime, most: int = 4) -> list[Row]:
    """Return new rows, some of them copies."""
    found: list[Row] = []
    for _ in range(draw.randint(1, most)):
        lake.number += 1
        row = (
            lake.number,
            draw.choice(SHOPS),
            draw.choice((None, 1, 5, 7, 9)),
            now - timedelta(minutes=draw.randint(0, 90)),
        )
        found += [row] * draw.choice((1, 1, 1, 2))
    return found
