"""Change events of a database as lines: recorded ones of a real Postgres, and broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlrun.decoding import change_events
from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.decoding.formats import ChangeLines
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import Place
from sqlrun.project import DESCRIPTIONS, Changes, Column

FIXTURES = Path(__file__).parents[1] / "fixtures" / "debezium"
TYPES = {"committed_at": "timestamp", "unavailable": "array<string>"}
DESCRIBED = tuple(
    Column(name, TYPES.get(name, "string"), "", Place("sources.yml"), comes_from=name) for name in DESCRIPTIONS
)
CUSTOMERS = {
    "id": "bigint", "name": "string", "balance": "decimal(12,4)", "born": "date", "created": "timestamp",
    "updated": "timestamp", "tags": "array<string>", "attrs": "struct<k:int>", "active": "boolean",
}  # fmt: skip
DOCS = {"id": "bigint", "title": "string", "body": "string"}


def events(types: dict[str, str], described: tuple[Column, ...] = DESCRIBED, **more: Any) -> ChangeEvents:
    own = tuple(Column(name, kind, "", Place("sources.yml")) for name, kind in types.items())
    return ChangeEvents(Changes("debezium", ("id",), **more), (*own, *described))


def recorded(name: str, one: ChangeEvents) -> list[dict[str, Any]]:
    """Return the lines of a recorded topic, without its tombstones."""
    messages = [json.loads(text) for text in (FIXTURES / f"{name}.jsonl").read_text().splitlines() if text.strip()]
    found = [one.line(json.dumps(message["value"])) for message in messages]
    assert [line is None for line in found] == [message["value"] is None for message in messages]
    return [json.loads(line) for line in found if line is not None]


@pytest.mark.parametrize("name", ["plain.public.customers", "flat.public.customers"])
def test_envelopes_and_flat_objects_are_the_same_changes(name: str) -> None:
    found = recorded(name, events(CUSTOMERS, times=(("updated", "milliseconds"),)))

    assert [(row["op"], row["id"], row["name"]) for row in found] == [
        ("r", 20, "Bo"), ("r", 4, "T4b"), ("r", 5, "Eve"), ("r", 1, "Ana"), ("r", 6, "Fay"),
        ("c", 7, "Gus"), ("u", 7, "Gus"), ("d", 7, None), ("c", 7, "Gus2"),
    ]  # fmt: skip
    positions = [row["position"] for row in found]
    assert positions == sorted(positions) and len(set(positions)) == 5
    assert [row["snapshot"] is not None for row in found] == [True] * 5 + [False] * 4
    ana = found[3]
    assert (ana["born"], ana["attrs"], ana["active"]) == ("1990-01-02", {"k": 1}, False)
    assert (ana["created"], ana["updated"]) == ("2026-11-24T06:35:18.514056Z", "2026-01-01T00:00:00.123000Z")
    assert found[0]["committed_at"].startswith("2026-11-24T06:36:53.791")
    assert [row["transaction"] for row in found[5:]] == ["764", "765", "766", "767"]


def test_schemas_say_how_values_are_written() -> None:
    """Decimals are bytes, dates are days, and times have the units of their types; no unit is declared."""
    found = recorded("shop.public.customers.schemas-enabled", events(CUSTOMERS))

    rows = {row["position"]: row for row in found}
    first = found[0]
    assert (first["balance"], first["born"], first["tags"]) == (10.5, "1990-01-02", ["a", "b"])
    assert first["updated"] == "2026-11-24T06:35:18.514000Z"
    assert [row["balance"] for row in found if row["name"] == "Fay"] == [1.2345]
    # The key 2 becomes 20: a delete and an insert at one position of the log.
    assert [row["op"] for position, row in sorted(rows.items()) if position.startswith(found[4]["position"][:20])] == [
        "d", "c"
    ]  # fmt: skip
    assert {"phone", "mail"} <= found[-1].keys() and "phone" not in first


def test_the_digits_of_numbers_stay() -> None:
    text = json.dumps(event("c", after={"id": 1, "name": "N"})).replace('"N"', "1.10000000000000000000000001e2")

    assert ":1.10000000000000000000000001e2" in (events({"id": "bigint", "name": "double"}).line(text) or "")


@pytest.mark.parametrize("name", ["plain.public.docs", "flat.public.docs"])
def test_a_value_that_a_change_left_alone_is_unavailable(name: str) -> None:
    found = recorded(name, events(DOCS))

    assert [(row["body"], row["unavailable"]) for row in found] == [
        ("xxx...9000 x...", []), (None, ["body"]), ("short", [])
    ]  # fmt: skip


def test_an_unavailable_value_is_never_null_without_a_word() -> None:
    one = events(DOCS, described=DESCRIBED[:2])

    with pytest.raises(Undecodable, match="the value of `body` is unavailable"):
        one.line(json.dumps(event("u", after={"id": 1, "body": change_events.PLACEHOLDER})))


@pytest.mark.parametrize("value", change_events.UNAVAILABLE, ids=repr)
def test_each_form_of_an_unavailable_value(value: object) -> None:
    text = json.dumps(event("u", after={"id": 1, "body": value}))
    if value == [str(ord(letter)) for letter in change_events.PLACEHOLDER]:
        text = json.dumps(event("u", after={"id": 1, "body": [ord(letter) for letter in change_events.PLACEHOLDER]}))

    assert json.loads(events(DOCS).line(text) or "")["unavailable"] == ["body"]


def test_only_the_key_of_a_deleted_row_is_read() -> None:
    found = json.loads(events(DOCS).line(json.dumps(event("d", before={"id": 7, "title": "filler", "n": 0}))) or "")

    assert {name: found.get(name) for name in (*DOCS, "n")} == {"id": 7, "title": None, "body": None, "n": None}


def test_a_truncate_has_no_row() -> None:
    (found,) = recorded("plain.public.orders", events(DOCS))

    assert (found["op"], found["id"], found["position"]) == ("t", None, "00000000000026785992/1")


def test_lines_of_the_embedded_engine() -> None:
    one = events({"id": "bigint", "v": "string"}, table="public.after_start")
    data = (FIXTURES / "engine-file-sink.jsonl").read_bytes()
    found = change_events.decode(ChangeLines(one.changes, one.columns), data + b"\n \n").to_pylist()

    assert len(found) == 14
    rows = [json.loads(row["value"]) for row in found if row["fault"] is None and row["value"].strip()]
    assert [(row["id"], row["v"]) for row in rows] == [(1, "late table")]
    assert [row["fault"] for row in found].count(change_events.OTHER_TABLE) == 10
    assert {row["fault"] for row in found} == {None, change_events.OTHER_TABLE}


@pytest.mark.parametrize("name", ["plain.message", "plain.transaction"])
def test_a_file_s_messages_and_transactions_are_of_no_table(name: str) -> None:
    """A file of the embedded engine has them beside the changes: they are dropped, as another table's are."""
    recorded = [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines()]
    one, lines = events(DOCS), "".join(json.dumps(each["value"]) + "\n" for each in recorded)

    found = change_events.decode(ChangeLines(one.changes, one.columns), lines.encode()).to_pylist()

    assert found
    assert [row["fault"] for row in found] == [change_events.OTHER_TABLE] * len(recorded)


def event(op: str, **more: Any) -> dict[str, Any]:
    source = {"db": "shop", "schema": "public", "table": "docs", "lsn": 24, "txId": 3, "ts_ms": 1, "snapshot": "false"}
    return {"op": op, "before": None, "after": None, "source": source} | more


BROKEN = {
    "{": "isn't JSON", "[]": "isn't an object", "{}": "no change event", '{"op":"c","op":"c"}': "twice",
    '{"op":NaN}': "isn't JSON", '{"op":"c","source":{}}': "has no `after`", "[" * 100_000: "isn't JSON",
    json.dumps(event("m")): "of no table", json.dumps(event("C")): 'the unknown operation "C"',
    json.dumps(event(["c"])): "the unknown operation",  # type: ignore[arg-type]
    json.dumps(event("c", after={"title": "a"})): "has no key `id`",
    json.dumps(event("d", before={"id": None})): "has no key `id`",
    json.dumps(event("d", after={"id": 1})): "has no `before`",
    json.dumps(event("c", after={"id": 1}, source={"table": "docs"})): "has no position",
    json.dumps(event("c", after={"id": 1}, source={"lsn": "x"})): "has no position",
    json.dumps(event("c", after={"id": 1, "at": 5})): "`at` is a number. Declare its unit",
    json.dumps(event("c", after={"id": 1, "attrs": "{"})): "isn't JSON",
    json.dumps(event("c", after={"id": 1, "price": "!"})): "isn't the bytes of a number",
    json.dumps(event("c", after={"id": 1, "title": "\ud800"})): "half a surrogate pair",
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BROKEN.items(), ids=[str(n) for n in range(len(BROKEN))])
def test_what_is_no_change_of_a_row_is_named(text: str, reason: str) -> None:
    one = events({**DOCS, "at": "timestamp", "attrs": "struct<k:int>", "price": "decimal(9,2)"}, decimals="bytes")

    with pytest.raises(Undecodable) as raised:
        one.line(text)
    assert reason in raised.value.reason


def test_a_position_of_mysql_sorts_by_file_place_and_row() -> None:
    one = events({"id": "bigint"})
    places = [
        ("mysql-bin.000009", 5, 1),
        ("mysql-bin.000010", 4, 0),
        ("mysql-bin.000010", 4, 1),
        ("mysql-bin.000010", 30, 0),
    ]
    found = [
        json.loads(one.line(json.dumps(event("c", after={"id": 1}, source={"file": f, "pos": p, "row": r}))) or "")
        for f, p, r in places
    ]

    positions = [row["position"] for row in found]
    assert positions == sorted(positions) and len(set(positions)) == 4


def test_a_decimal_has_the_scale_of_its_schema_or_of_its_column() -> None:
    of_column = events({"id": "bigint", "price": "decimal(12,2)"}, decimals="bytes")
    variable = {"scale": 3, "value": "AYY="}

    assert '"price":3.90' in (of_column.line(json.dumps(event("c", after={"id": 1, "price": "AYY="}))) or "")
    assert '"price":0.390' in (of_column.line(json.dumps(event("c", after={"id": 1, "price": variable}))) or "")
    plain = events({"id": "bigint", "price": "decimal(12,2)"})
    assert '"price":"AYY="' in (plain.line(json.dumps(event("c", after={"id": 1, "price": "AYY="}))) or "")


def test_changes_at_one_position_sort_as_they_happened() -> None:
    """A row of a snapshot is older than a change, and a changed key is a deletion before an insert."""
    one = events({"id": "bigint"})
    rows = {"before": {"id": 1}, "after": {"id": 1}}
    found = [json.loads(one.line(json.dumps(event(op, **rows))) or "")["position"] for op in "rdc"]

    assert found == sorted(found) and len(set(found)) == 3
