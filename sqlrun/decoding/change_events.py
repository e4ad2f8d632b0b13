"""Change events of Debezium and Maxwell, as lines with the columns of a table. Pure.

Maxwell's are read as Debezium's (`event_forms`). One of Debezium is an envelope with `op`, `before`, `after` and
`source`, or the flat object that Debezium's transformation `ExtractNewRecordState` makes of one; with its schema
(`schema` and `payload`) or without; or a line of the embedded engine, with `topic`, `key` and `value`. MongoDB's rows
are documents, texts of extended JSON. A line has the row's columns and the declared columns that describe
the change, such as the position in the database's log. Positions are texts that sort as the changes happened.

What an event doesn't say stays unknown: of a delete's `before` only the key is read, because Postgres fills its other
columns with defaults, and a large value that a change left alone is NULL and named as unavailable.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlrun.decoding import event_forms, json_lines
from sqlrun.decoding.event_forms import Event, Writer
from sqlrun.decoding.formats import ChangeLines, FirstTable
from sqlrun.decoding.records import Fault, quoted, table
from sqlrun.decoding.scalar_text import date_text, time_text, unscaled_text
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.decoding.usual_events import Columns, UsualEvents
from sqlrun.project import MAXWELL, OLD, Changes, Column

if TYPE_CHECKING:
    import pyarrow as pa

BLANKS = " \t\r\n"
OTHER_TABLE = "event of another table"
# Debezium's own text for a value that the database doesn't send because the change left it alone.
PLACEHOLDER = "__debezium_unavailable_value"
UNAVAILABLE: tuple[object, ...] = (
    PLACEHOLDER,
    base64.b64encode(PLACEHOLDER.encode()).decode(),
    [PLACEHOLDER],
    [str(ord(letter)) for letter in PLACEHOLDER],
    {PLACEHOLDER: PLACEHOLDER},
)
ABSENT = frozenset(quoted(value) for value in UNAVAILABLE if isinstance(value, str))
# Order of changes at one position: a snapshot's row is older than a change, and a key changes by delete and insert.
RANKS = {"r": 0, "d": 1, "t": 1, "c": 2, "u": 2}
TRUNCATE, DELETE, MESSAGE = "t", "d", "m"
# Units of a number by the name of its schema.
UNIT_OF = {
    "io.debezium.time.Timestamp": "milliseconds",
    "io.debezium.time.MicroTimestamp": "microseconds",
    "io.debezium.time.NanoTimestamp": "nanoseconds",
    "org.apache.kafka.connect.data.Timestamp": "milliseconds",
}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
SCALE = re.compile(r"decimal\([0-9]+, ?([0-9]+)\)")
NESTED = ("array<", "struct<", "map<")
WHOLE = ("bigint", "int", "smallint", "tinyint")
BOOLEANS = {"0": "false", "1": "true"}
# Types whose values lines have as events write them, unless they are lists or objects.
AS_WRITTEN = ("string", *WHOLE, "float", "double")
CONSTANTS = {"null": None, "true": True, "false": False}
# What the names of an event's own fields begin with in a flat object, the more exact one last.
FLAT = ("__", "__source_")
ENGINE = frozenset({"topic", "key", "value"})
# Members of the events that `provide.transaction.metadata` adds.
TRANSACTION = frozenset({"status", "id", "event_count", "data_collections"})


class OtherTable(Undecodable):
    """A change event of another table than the declared one, or of none."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Undecodable("the change event has a member twice")
    return found


def _constant(name: str) -> Any:
    raise Undecodable(f"the change event isn't JSON: {name}")


QUICK = json.JSONDecoder()
_DECODER = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_constant, object_pairs_hook=_members
)


@dataclass(frozen=True, slots=True)
class ChangeEvents:
    """What turns change events into lines. `columns` are all columns of the source.

    `first_table` returns the whole name of the table of the source's first event; its argument is that of an event.
    """

    changes: Changes
    columns: tuple[Column, ...]
    first_table: FirstTable | None = None
    _firsts: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _declared: dict[str, Column] = field(init=False, repr=False)
    _order: tuple[tuple[str, str, Writer | None], ...] = field(init=False, repr=False)
    _usual: UsualEvents = field(init=False, repr=False)
    _lists_unavailable: bool = field(init=False, repr=False)
    _old: Mapping[str, str] = field(init=False, repr=False)  # columns of the old key, by the columns of the key

    def __post_init__(self) -> None:
        """Divide the columns into the row's and the ones that describe the change."""
        object.__setattr__(self, "_declared", {c.name: c for c in self.columns if not c.comes_from})
        order = tuple((c.name, f"{quoted(c.name)}:", WRITERS.get(c.comes_from)) for c in self.columns)
        object.__setattr__(self, "_order", order)
        object.__setattr__(self, "_lists_unavailable", any(c.comes_from == "unavailable" for c in self.columns))
        old = {c.comes_from.removeprefix(OLD): c.name for c in self.columns if c.comes_from.startswith(OLD)}
        object.__setattr__(self, "_old", old)
        special = [name for name, column in self._declared.items() if column.type not in AS_WRITTEN]
        known = Columns(
            order, self._declared, self.changes.key, special, self._converted, ABSENT, self._lists_unavailable
        )
        object.__setattr__(self, "_usual", UsualEvents(known))

    def line(self, text: str, members: str = "") -> str | None:
        """Return the line of an event; None for a tombstone, which follows a delete.

        `members` are what comes with a message: in MongoDB only the message's key says which document is deleted.

        Raises: Undecodable.
        """
        found = self._usual.line(text)
        if found is None and (found := self._unusual(text, members)) is None:
            return None
        try:
            found.encode()
        except UnicodeEncodeError:
            raise Undecodable("the change event has half a surrogate pair") from None
        return found

    def _unusual(self, text: str, members: str) -> str | None:
        """Return the line of an event, and remember its form."""
        event = self.event(text, members=members)
        if event is None:
            return None
        self._check_table(event.source)
        row, absent = self._row(event)
        if absent and not self._lists_unavailable:
            raise Undecodable(
                f"the value of `{absent[0]}` is unavailable: the change left it alone. Declare a column with "
                "`from: unavailable`"
            )
        self._usual.learn(text)
        return f"{{{','.join(self._in_order(event, row, absent, self._old_key(event)))}}}"

    def _in_order(
        self, event: Event, row: Mapping[str, str], absent: Sequence[str], old: Mapping[str, str]
    ) -> Iterator[str]:
        """Yield a line's members in the order of the declared columns, which the landing reads fastest."""
        for name, start, write in self._order:
            if write is not None:
                yield start + write(event, absent)
            elif name in old:
                yield start + old[name]
            elif name in row:
                yield start + row[name]
        for name in row:
            if name not in self._declared:
                yield f"{quoted(name)}:{row[name]}"

    def event(self, text: str, decoder: json.JSONDecoder = _DECODER, members: str = "") -> Event | None:
        """Return the event of a text; None for a tombstone. By `QUICK` numbers lose their text. Raises: Undecodable."""
        found, key = _json(text, decoder), None
        if isinstance(found, dict) and found.keys() >= ENGINE:
            found, key = found["value"], found["key"]
        types: Mapping[str, Any] = {}
        if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
            found, types = found["payload"], _types(found["schema"])
        if found is None:
            return None
        if not isinstance(found, dict):
            raise Undecodable("the change event isn't an object")
        if self.changes.format == MAXWELL:
            if event_forms.is_maxwell(found):
                self._check_table({"db": found["database"], "table": found.get("table")})
            whole = event_forms.maxwell_envelope(found)
            if whole is None:
                raise OtherTable("the event is of no row: it changes a schema, or a bootstrap begins or ends")
            return self._enveloped(whole, types)
        if found.get("op") == MESSAGE or found.keys() >= TRANSACTION:
            raise OtherTable("the event is of no table: it is a message, or a transaction's begin or end")
        if "op" in found and isinstance(found.get("source"), dict):
            if event_forms.is_mongodb(found["source"]):
                found = self._of_documents(found, key if key is not None else self._message_key(members))
            return self._enveloped(found, types)
        if "__op" in found:
            return self._flat(found, types)
        raise Undecodable("the object is no change event: it has neither `op` and `source` nor `__op`")

    def _enveloped(self, found: Mapping[str, Any], types: Mapping[str, Any]) -> Event:
        op = _op(found["op"])
        row = found.get("before" if op == DELETE else "after")
        if op == TRUNCATE:
            row = {}
        elif not isinstance(row, dict):
            raise Undecodable(f"the change event `{op}` has no `{'before' if op == DELETE else 'after'}`")
        transaction = found.get("transaction")
        number = found["source"].get("txId", transaction.get("id") if isinstance(transaction, dict) else None)
        return Event(op, row, found["source"], None if number is None else str(number), types, found.get("old", {}))

    def _of_documents(self, found: Mapping[str, Any], key: Any) -> dict[str, Any]:
        """Return an event of MongoDB with documents as rows; `key` is the one of its message."""
        source = {**found["source"], "table": found["source"].get("collection")}
        before, after = (self._document(found.get(name)) for name in ("before", "after"))
        if found["op"] == DELETE:
            before = {**event_forms.id_of(key, _json, _Number), **(before or {})}
            if not before:
                raise Undecodable(event_forms.KEYLESS)
        elif found["op"] == "u" and after is None:
            raise Undecodable(event_forms.CAPTURE)
        return {**found, "source": source, "before": before, "after": after}

    def _document(self, text: Any) -> dict[str, Any] | None:
        """Return the values of a document by name; an object or a list in a column of type string is its text."""
        if text is None:
            return None
        found = event_forms.unwrapped(_json(text) if type(text) is str else text, _Number)
        if not isinstance(found, dict):
            raise Undecodable("the change event's document isn't an object")
        texts = {name for name, column in self._declared.items() if column.type == "string"}
        return {
            name: _written(value) if name in texts and isinstance(value, dict | list) else value
            for name, value in found.items()
        }

    def _message_key(self, members: str) -> Any:
        """Return the key of a message, from the column that has it; None if there is no such column."""
        names = [column.name for column in self.columns if column.comes_from == "key"]
        return json.loads(f"{{{members}}}").get(names[0]) if names and members else None

    def _old_key(self, event: Event) -> dict[str, str]:
        """Return the JSON texts of the key that the row had before, by columns; {} if the change left the key alone."""
        keys = self.changes.key
        if self.changes.format != MAXWELL or event.old.keys().isdisjoint(keys):
            return {}
        for key in keys:
            if key not in self._old:
                raise Undecodable(f"the change gave the row another key. Declare a column with `from: {OLD}{key}`")
        return {self._old[key]: self._text(key, event.old.get(key, event.row[key]), {}) for key in keys}

    def _flat(self, found: Mapping[str, Any], types: Mapping[str, Any]) -> Event:
        row = {name: value for name, value in found.items() if not name.startswith("__")}
        source: dict[str, Any] = {}
        for prefix in FLAT:
            source |= {name.removeprefix(prefix): v for name, v in found.items() if name.startswith(prefix)}
        number = source.get("txId", source.get("transaction_id"))
        return Event(_op(found["__op"]), row, source, None if number is None else str(number), types)

    def _row(self, event: Event) -> tuple[dict[str, str], list[str]]:
        """Return the JSON texts of a row's members, and the names of the unavailable ones."""
        keys = self.changes.key
        if event.op == TRUNCATE:
            return dict.fromkeys(self._declared, "null"), []
        for key in keys:
            if event.row.get(key) is None:
                raise Undecodable(f"the change event has no key `{key}`")
        if event.op == DELETE:
            texts = dict.fromkeys(self._declared, "null")
            return texts | {key: self._text(key, event.row[key], event.types) for key in keys}, []
        absent = [name for name, value in event.row.items() if value in UNAVAILABLE]
        return {
            name: "null" if name in absent else self._text(name, value, event.types)
            for name, value in event.row.items()
        }, absent

    def _text(self, name: str, value: Any, types: Mapping[str, Mapping[str, Any]]) -> str:
        """Return the JSON text of a value, as its column's type reads it."""
        column = self._declared.get(name)
        if value is None or column is None:
            return _written(value)
        kind = column.type
        # The two most frequent ones first.
        if kind == "string" and type(value) is str:
            return quoted(value)
        if kind in WHOLE and type(value) is _Number:
            return str(value)
        schema = types.get(name, {})
        if kind.startswith("decimal"):
            return self._decimal(kind, value, schema)
        if isinstance(value, _Number) and kind == "date":
            return date_text(value)
        if isinstance(value, _Number) and kind == "boolean":
            # MySQL's booleans are the numbers 0 and 1.
            return BOOLEANS.get(value, str(value))
        if isinstance(value, _Number) and kind.startswith("timestamp"):
            unit = UNIT_OF.get(str(schema.get("name"))) or self.changes.unit(name)
            if not unit:
                raise Undecodable(f"`{name}` is a number. Declare its unit: `times: {{{name}: milliseconds}}` of `cdc`")
            return time_text(value, unit)
        if type(value) is str and kind.startswith(NESTED):
            # The text of a column of type json.
            return _written(_json(value))
        if isinstance(value, dict | list) and kind == "string" and self.changes.format == MAXWELL:
            return quoted(_written(value))
        return _written(value)

    def _converted(self, name: str, text: str) -> str:
        """Return the JSON text of a value by the text that an event has for it, which has no escapes."""
        value = text[1:-1] if text.startswith('"') else CONSTANTS.get(text, _Number(text))
        return self._text(name, value, {})

    def _decimal(self, kind: str, value: Any, schema: Mapping[str, Any]) -> str:
        if isinstance(value, dict) and value.keys() == {"scale", "value"}:
            return unscaled_text(value["value"], str(value["scale"]))
        if type(value) is not str:
            return _written(value)
        if schema.get("name") == DECIMAL:
            return unscaled_text(value, str(schema.get("parameters", {}).get("scale", "0")))
        found = SCALE.fullmatch(kind)
        if self.changes.decimals == "bytes" and found:
            return unscaled_text(value, found[1])
        return value if NUMBER.fullmatch(value) else quoted(value)

    def _check_table(self, source: Mapping[str, Any]) -> None:
        """Raise Undecodable for an event of another table than the declared one."""
        wanted = self.changes.table
        if not wanted:
            return
        name = ".".join([str(source[part]) for part in ("db", "schema", "table") if source.get(part)])
        if name == wanted:
            return
        if not name.endswith(f".{wanted}"):
            raise OtherTable(f"the change event is of the table `{name}`, not of `{wanted}`")
        if self.first_table is None:
            return
        first = self._firsts.get(name)
        if first is None:
            first = self._firsts[name] = self.first_table(name)
        if first != name:
            raise Undecodable(
                f"the change event is of the table `{name}`, and the source's first one was of `{first}`: several "
                f"tables have the name `{wanted}`. Declare the longer name of one as `table` of `cdc`"
            )


def decode(form: ChangeLines, data: bytes) -> pa.Table:
    """Return the lines of a file of change events, and the reasons why others have none; a tombstone is blank.

    A file of the embedded engine has the events of all tables: the reason of another table's is `OTHER_TABLE`.
    """
    events = ChangeEvents(form.changes, form.columns, form.first_table)
    lines, faults = list[str](), dict[int, Fault]()
    for number, text in enumerate(json_lines.lines(data).to_pylist()):
        try:
            lines.append("" if not text.strip(BLANKS) else events.line(text) or "")
        except OtherTable:
            faults[number] = Fault(text, OTHER_TABLE)
        except Undecodable as error:
            faults[number] = Fault(text, error.reason)
    return table(lines, faults)


def _json(text: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"the change event isn't JSON: {str(error).partition(':')[0]}") from None


def _types(schema: Any) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of a row's fields by name: of the envelope's `after`, or of the flat object."""
    fields = _by_name(schema)
    return _by_name(fields.get("after", schema))


def _by_name(schema: Any) -> dict[str, Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return {str(one.get("field")): one for one in fields or () if isinstance(one, dict)}


def _op(value: Any) -> str:
    if type(value) is not str or value not in RANKS:
        raise Undecodable(f"the change event has the unknown operation {_written(value)}")
    return value


def _written(value: Any) -> str:
    """Return a value's JSON text, with the digits that it had."""
    match value:
        case None:
            return "null"
        case True | False:
            return "true" if value else "false"
        case _Number():
            return str(value)
        case str():
            return quoted(value)
        case list():
            return f"[{','.join(map(_written, value))}]"
        case _:
            return f"{{{','.join(f'{quoted(name)}:{_written(one)}' for name, one in value.items())}}}"


def position(event: Event, absent: Sequence[str] = ()) -> str:
    """Return the position of a change in the database's log, as a text that sorts as the changes happened.

    Postgres: the log sequence number. MySQL: the number of the binlog's file, the position in it, and the row's.
    MongoDB: the time in the oplog, and the number in it.

    Raises: Undecodable if the event has none.
    """
    source = event.source
    try:
        if source.get("lsn") is not None:
            return f'"{int(source["lsn"]):020}/{RANKS[event.op]}"'
        if source.get("file") and source.get("pos") is not None:
            number = int(str(source["file"]).rpartition(".")[2])
            row = int(source.get("row") or 0)
            return f'"{number:010}/{int(source["pos"]):020}/{row:010}/{RANKS[event.op]}"'
        if source.get("ord") is not None and source.get("ts_ms") is not None:
            return f'"{int(source["ts_ms"]):020}/{int(source["ord"]):010}/{RANKS[event.op]}"'
    except (ValueError, TypeError):
        pass
    why = source.get(event_forms.ADVICE) or "neither `lsn` nor `file` and `pos`"
    raise Undecodable(f"the change event has no position: {why}")


def _committed(event: Event, absent: Sequence[str]) -> str:
    """Return when the database committed the change."""
    for name, unit in (("ts_ns", "nanoseconds"), ("ts_us", "microseconds"), ("ts_ms", "milliseconds")):
        if event.source.get(name) is not None:
            return time_text(str(event.source[name]), unit)
    return "null"


def _snapshot(event: Event, absent: Sequence[str]) -> str:
    value = event.source.get("snapshot")
    return "null" if value in (None, "false", False) else quoted(str(value).lower())


def _table(event: Event, absent: Sequence[str]) -> str:
    return quoted(".".join(str(event.source[part]) for part in ("schema", "table") if event.source.get(part)))


# What a column may say about a change, with what writes its JSON text; the keys are `project.DESCRIPTIONS`.
WRITERS: dict[str, Writer] = {
    "op": lambda event, absent: quoted(event.op),
    "position": position,
    "committed_at": _committed,
    "transaction": lambda event, absent: "null" if event.transaction is None else quoted(event.transaction),
    "snapshot": _snapshot,
    "table": _table,
    "unavailable": lambda event, absent: f"[{','.join(map(quoted, absent))}]",
}
