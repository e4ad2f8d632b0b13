"""Events of a form that came before have the line that the parser writes, or the same fault."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import Place
from sqlrun.project import DESCRIPTIONS, Changes, Column
from tests.support.databases import PLACEHOLDER

RECORDED = Path(__file__).parents[1] / "fixtures" / "debezium"
TYPES = {
    "id": "bigint", "name": "string", "price": "decimal(9,2)", "day": "date", "at": "timestamp", "is_new": "boolean",
    "score": "double", "tags": "array<string>", "attrs": "struct<a:int>",
}  # fmt: skip
VALUES = [
    1, -7, 0, 12345678901234567890, 1.5, 1e400, -0.0, True, False, None, "", "a", "é😀", 'a "b" \\ c', "a\nb", "\x7f",
    "\u2028", "null", "12", "1.50", "YWJj", "{}", '{"a": 1}', '["x"]', '["x"', "\ud83d", PLACEHOLDER, ["a"], [],
    {"a": 2}, [PLACEHOLDER], "2026-05-04T10:00:00Z", 19_000, 1_777_896_000_000,
]  # fmt: skip


def reader(types: dict[str, str] = TYPES, **changes: Any) -> ChangeEvents:
    described = [name for name in DESCRIPTIONS if name != "key" and not changes.get("untold")]
    changes.pop("untold", None)
    own = [Column(name, kind, "", Place("a")) for name, kind in types.items()]
    about = [Column(f"its_{name}", "string", "", Place("a"), comes_from=name) for name in described]
    return ChangeEvents(Changes("debezium", ("id",), **changes), (*own, *about))


def found(events: ChangeEvents, text: str) -> str | None:
    try:
        return events.line(text)
    except Undecodable as error:
        return f"fault: {error.reason}"


def parsed(events: ChangeEvents, text: str) -> str | None:
    """Return what the parser alone finds."""
    events._usual._forms.clear()
    return found(events, text)


def event(random: Random) -> dict[str, Any]:
    """Return an event: most are usual ones, others have any value anywhere."""
    odd = random.random() < 0.4
    row: dict[str, Any] = {"id": random.randint(1, 9), "name": random.choice(["a", "é", None]), "price": "1.50"}
    for name in TYPES.keys() - row.keys():
        row[name] = None
    for _ in range(odd * random.randint(1, 3)):
        row[random.choice([*TYPES, "undeclared"])] = random.choice(VALUES)
    if random.random() < 0.1:
        row["body"] = PLACEHOLDER
    op = random.choice("rcuud")
    number = random.randint(1000, 2000)
    source = {
        "version": "3", "connector": "postgresql", "db": "shop", "schema": "public", "table": "docs", "lsn": number,
        "sequence": f'["{number}","{number}"]', "txId": random.randint(1, 99), "ts_ms": 1_777_896_000_000 + number,
        "ts_us": 1_777_896_000_000_000 + number, "snapshot": "first" if op == "r" else "false", "xmin": None,
    }  # fmt: skip
    if random.random() < 0.1:
        source[random.choice([*source])] = random.choice([None, "x", 1.5, True, -1, "\ud83d", {"a": 1}])
    if random.random() < 0.05:
        source.pop(random.choice([*source]))
    whole = {"before": None, "after": row, "source": source, "op": op, "ts_ms": number, "transaction": None}
    if op == "d" or random.random() < 0.2:
        whole["before"] = row
    if op == "d":
        whole["after"] = None
    if random.random() < 0.1:
        whole["transaction"] = {"id": f"1:{number}", "total_order": 1}
    return whole


def texts(random: Random, count: int) -> Iterable[str]:
    for _ in range(count):
        one = event(random)
        if random.random() < 0.1:
            one = {"topic": "t", "key": {"id": 1}, "value": one}
        text = json.dumps(one, ensure_ascii=random.random() < 0.3, separators=random.choice([(",", ":"), (", ", ": ")]))
        if random.random() < 0.05:
            text = text.replace(random.choice('1":,a'), random.choice(['"', "01", "", "\t", "a", "١"]), 1)
        yield text


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("changes", [{}, {"table": "public.docs", "decimals": "bytes"}, {"untold": True}])
def test_lines_and_faults_are_those_of_the_parser(seed: int, changes: dict[str, Any]) -> None:
    random = Random(seed)
    usual, alone = reader(**changes), reader(**changes)
    hits = 0
    for text in texts(random, 1500):
        hits += usual._usual.line(text) is not None
        assert found(usual, text) == parsed(alone, text), text
    assert hits > 100


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_recorded_events_have_the_lines_of_the_parser(path: Path) -> None:
    usual, alone = reader(), reader()
    lines = path.read_text().splitlines()
    for line in [*lines, *lines]:
        value = json.loads(line).get("value")
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        for text in (line, compact):
            assert found(usual, text) == parsed(alone, text), text


def test_events_of_a_connector_are_usual() -> None:
    """The second event of a form is matched; so are those that differ in values alone."""
    events, random = reader(), Random(1)
    one = event(Random(3))
    one["after"], one["before"], one["op"] = dict.fromkeys(TYPES) | {"id": 1, "name": "a"}, None, "u"
    assert events._usual.line(json.dumps(one)) is None
    events.line(json.dumps(one))
    for name in ("a", "é", None, "1"):
        one["after"]["name"], one["source"]["lsn"] = name, random.randint(1, 10**9)
        assert events._usual.line(json.dumps(one, ensure_ascii=False)) == parsed(reader(), json.dumps(one))


def test_forms_that_came_long_ago_make_room() -> None:
    events = reader()
    for number in range(40):
        one = event(Random(3))
        one["op"], one["before"], one["after"], one["transaction"] = "u", None, {"id": 1}, None
        one["source"] = {"lsn": 1, "txId": 2, f"more_{number}": 1}
        events.line(json.dumps(one))
    assert len(events._usual._forms) == 8 and events._usual.line(json.dumps(one)) is not None
