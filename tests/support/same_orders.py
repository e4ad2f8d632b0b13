"""The same orders landed from every kind of source. Shell: files, broker, the engine."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from sqlrun.engine_api import Engine
from tests.support import file_site, kafka_site
from tests.support.file_site import Folder
from tests.support.orders_in_formats import COLUMNS, FORMATS, SELECT, Order, json_lines, parquet
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.topics import Message

# Landed rows as text, and the reasons of quarantined records.
Result = tuple[str, list[str]]
FILES = 3
INT = 2**31


def fits(row: Order) -> bool:
    """Return whether an order has values of the declared types alone."""
    n, price, wide = row["n"], row["price"], row["wide"]
    return (
        (n is None or -INT <= n < INT)
        and (price is None or abs(price) <= Decimal("9999999.99"))
        and (wide is None or math.isfinite(wide))
    )


def from_files(folder: Path, engine: Engine, kind: str, rows: list[Order]) -> Result:
    """Land orders from three files of a format of `FORMATS`."""
    declared, ending, write = FORMATS[kind]
    one = file_site.made(folder, engine, declared, columns=COLUMNS, select=SELECT)
    third = len(rows) // FILES + 1
    for number in range(FILES):
        one.put(f"{number}.{ending}", write(rows[number * third : (number + 1) * third]))
    note = one.lands()
    assert "can't be read" not in note, note
    return _result(one, len(rows))


def from_topic(folder: Path, engine: Engine, broker: Broker, rows: list[Order]) -> Result:
    """Land orders from the messages of a topic with two partitions."""
    topic = kafka_site.made(folder, broker, engine, columns=COLUMNS, select=SELECT, partitions=2)
    lines = json_lines(rows).rstrip(b"\n").split(b"\n")
    topics.produce(broker, topic.name, (Message(line, partition=n % 2) for n, line in enumerate(lines)))
    assert topic.tick().published
    return _result(Folder(topic.site), len(rows))


def from_delta(folder: Path, engine: Engine, rows: list[Order]) -> str:
    """Return the rows of a model over a Delta table, whose types leave no record to quarantine."""
    one = file_site.made(folder, engine, "format: delta", columns=COLUMNS, select=SELECT)
    table = pq.read_table(io.BytesIO(parquet(rows)))
    narrow = table.schema.set(2, table.schema.field("n").with_type(pa.int32()))
    narrow = narrow.set(3, table.schema.field("price").with_type(pa.decimal128(9, 2)))
    write_deltalake(str(one.data), table.cast(narrow))
    assert one.tick().published
    return shown(one.site.rows("stg"))


def shown(rows: list[dict[str, Any]]) -> str:
    """Return rows as text, in the order of their ids."""
    return repr(sorted(rows, key=lambda row: str(row["id"])))


def _result(one: Folder, count: int) -> Result:
    found = one.counts()
    assert found["read"] == count == found["landed"] + found["quarantined"] and not found["unexplained"], found
    return repr(one.rows()), sorted(reason for reason, _ in one.held())
