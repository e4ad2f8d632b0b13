"""Unit tests recorded from published rows and their input rows. Shell: Delta files, DuckDB, the project's files.

The search reads input rows by the model's keys, where a key is copied from an input or has the same name there.
It proves the choice by running it: the model's query over the chosen rows has to return the published rows. Then it
removes piece after piece of the input rows that the result doesn't need.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun import pipeline
from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.errors import UsageError
from sqlrun.graph.lineage import Lineage
from sqlrun.parse.where_clause import condition
from sqlrun.pipeline import Prepared, ledger_of
from sqlrun.project import Row
from sqlrun.publish import view_query
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import find, tick_of
from sqlrun.publish.reader import query as read
from sqlrun.publish.table_state import Published
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.disk_cache import Cache
from sqlrun.test_definitions.values import shown
from sqlrun.transpile.writer import identifier, type_name
from sqlrun.unit_tests.author.pseudonyms import Masks, copies, private_columns
from sqlrun.unit_tests.author.scaffold import add, model_of, test_name
from sqlrun.unit_tests.author.yaml_writer import Written
from sqlrun.unit_tests.run.answers import Answers, asks_for_time

if TYPE_CHECKING:
    import pyarrow as pa

MOST_READ = 20_000  # maximum number of rows read from an input, the latest first
FEW = 10  # an input with at most this many rows isn't reduced
MOST_GIVEN = 200  # maximum number of rows of an input in a test
TRIALS = 200  # maximum number of runs of the query
PATIENCE = 20.0  # seconds, maximum for all trials together
Key = tuple[str, ...]


def record(root: Path, options: Mapping[str, Any]) -> list[str]:
    """Append a unit test of published rows to those of a model; return the lines to print.

    `options` are those of the command line: record, where, limit, name, profile.
    Raises: UsageError if nothing is published, no row satisfies the condition, or the input rows can't be found.
    """
    prepared = pipeline.prepare(root, Cache.of(root))
    model = model_of(prepared, options["record"])
    called = test_name(prepared, options["name"], f"{model.name}_recorded")
    ledger = ledger_of(root, prepared, options["profile"])
    past = _Past(prepared, ledger, tick_of(ledger), model.name)
    if past.query.rendered.sources:
        lands = prepared.project.landed(past.query.rendered.sources)
        why = "lands a source, whose lines" if lands else "reads the table of a source, whose rows"
        raise UsageError(f"{model.name} {why} aren't stored. Begin with `sqlrun new test {model.name}`")
    rows = past.published_rows(options["where"] or "", options["limit"])
    with Answers(prepared.project, past.queries, model.name, past.as_of) as answers:
        found = _Search(past, answers, rows)
        notes = found.search()
        test, masked = found.written(called, options["where"] or "")
    file = add(root, prepared, model, test)
    given = ", ".join(f"{len(rows)} of {text}" for text, rows in test.given)
    lines = [f"Wrote the unit test {called} to {file}, from {past.published}: {_counted(len(rows))} of {model.name}, "
             f"computed from {given}.", *notes, *masked]  # fmt: skip
    return [*lines, f"Next: review it, then run `sqlrun test --select {model.name}`."]


def _counted(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


@dataclass
class _Past:
    """A model and its inputs as of a published tick."""

    prepared: Prepared
    ledger: Ledger
    published: Published
    name: str
    queries: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.queries = {query.name: query for query in self.prepared.queries}
        self.query = self.queries[self.name]
        views = view_query.below_views(self.queries, self.prepared.workspace.views, self.name)
        asks = any(asks_for_time(self.queries[name]) for name in (self.name, *views))
        self.as_of = f"{self.published.as_of:%Y-%m-%d %H:%M:%S}" if asks else ""

    @cached_property
    def lineage(self) -> Lineage:
        return Lineage(self.prepared.project, self.prepared.graph, self.prepared.queries)

    def table(self, name: str, label: str) -> tuple[str, list[Relation]]:
        """Return a FROM item with the rows of a table or a view, and the relations that it reads."""
        if name not in self.prepared.workspace.views:
            return identifier(label, "duckdb"), [replace(find(self.published, self.ledger.warehouse, name), name=label)]
        views, warehouse = self.prepared.workspace.views, self.ledger.warehouse
        text, tables = view_query.over_tick(self.queries, views, name, self.published, warehouse, label)
        return f"({text})", tables

    def published_rows(self, where: str, limit: int) -> pa.Table:
        """Return the rows that satisfy a condition, in the grain's order. Raises: UsageError if there are none."""
        model = self.query.rendered.model
        item, relations = self.table(self.name, "_rows")
        names = list(self.query.columns)
        text = f"select {_columns(names)} from {item}"
        kinds = {column.name: column.type for column in model.columns}
        text += f" where {condition(where, {name: kinds.get(name, '') for name in names})}" if where else ""
        order = [name for name in model.grain if name in names]
        text += f" order by {_columns(order)}" if order else ""
        rows = read(f"{text} limit {limit}", relations)
        if not rows.num_rows:
            raise UsageError(f"{model.name} has no row{' where ' + where if where else ''} at {self.published}")
        return rows

    def input_rows(
        self, name: str, columns: Sequence[StoredColumn], keys: Mapping[str, str], rows: list[Row]
    ) -> pa.Table:
        """Return the rows of an input that have the keys of an output row, the latest first."""
        item, relations = self.table(name, "_input")
        times = [c.name for c in columns if c.type.startswith("timestamp")] + [
            c.name for c in columns if c.type == "date"
        ]
        items = ", ".join(
            f"cast({identifier(c.name, 'duckdb')} as {type_name(c.type, 'duckdb')}) as {identifier(c.name, 'duckdb')}"
            for c in columns
        )
        text = f"select {items} from {item} as i"
        if keys:
            of_rows, relations_of_rows = self._keys_of(keys, rows)
            same = " and ".join(
                f"i.{identifier(k, 'duckdb')} is not distinct from k.{identifier(k, 'duckdb')}" for k in keys
            )
            text += f" where exists (select 1 from {of_rows} as k where {same})"
            relations += relations_of_rows
        text += f" order by {identifier(times[0], 'duckdb')} desc nulls last" if times else ""
        return read(f"{text} limit {MOST_READ + 1}", relations)

    def _keys_of(self, keys: Mapping[str, str], rows: list[Row]) -> tuple[str, list[Relation]]:
        from sqlrun.incremental import types
        from sqlrun.test_definitions.values import literal

        model = self.query.rendered.model
        values = []
        for row in rows:
            cells = []
            for column in keys.values():
                known = model.column(column)
                assert known is not None
                value = row[column]
                cells.append(
                    literal(
                        value if value is None or isinstance(value, bool) else shown(value), types.parse(known.type)
                    )
                )
            values.append("(" + ", ".join(cells) + ")")
        return f"(select * from (values {', '.join(values)}) as v({_columns(list(keys))}))", []


def _columns(names: list[str]) -> str:
    return ", ".join(identifier(name, "duckdb") for name in names)


class _Search:
    """The input rows, reduced as long as the query over them still returns the published rows."""

    def __init__(self, past: _Past, answers: Answers, rows: pa.Table) -> None:
        self._past, self._answers = past, answers
        self._wanted = [dict(row) for row in arrow_rows.plain(rows)]
        self._tables: dict[str, pa.Table] = {}
        self._kept: dict[str, list[int]] = {}
        self._trials, self._until = TRIALS, time.monotonic() + PATIENCE
        self._exact = False

    def search(self) -> list[str]:
        """Find the rows; return notes on what couldn't be done."""
        notes: list[str] = []
        self._read(keyed=True)
        self._exact = self._reproduces()
        if not self._exact:
            self._read(keyed=False)
            self._exact = self._reproduces()
            if self._exact:
                notes.append("The model's keys couldn't narrow the inputs, so sqlrun searched all of their rows.")
        if self._exact:
            # Few rows with the same keys stay together: earlier versions and cancellations explain more than one row.
            for name in sorted(self._kept, key=lambda one: -len(self._kept[one])):
                if len(self._kept[name]) > FEW:
                    self._reduce(name)
        for name, numbers in self._kept.items():
            if len(numbers) > MOST_GIVEN:
                notes.append(
                    f"{name}: the test needs {len(numbers):,} rows, but only has the latest {MOST_GIVEN}. "
                    "Narrow --where."
                )
                self._keep(name, sorted(numbers)[:MOST_GIVEN])
                self._exact = False
        if not self._exact:
            notes.append(
                "The expected rows are the query's result over these rows, and differ from the published "
                "ones. The test needs "
                "more rows, or the model was edited since the tick."
            )
        return notes

    def _read(self, *, keyed: bool) -> None:
        past = self._past
        model = past.query.rendered.model
        made_of = copies(past.lineage, past.name, model.grain, past.queries)
        for name, columns in self._answers.inputs.items():
            keys: dict[str, str] = {}
            kinds = {c.name: c.type for c in columns}
            for key in model.grain if keyed else ():
                column = model.column(key)
                names = [item.column for item in made_of.get(key, ()) if item.node == name] or [key]
                for one in names:
                    if column is not None and kinds.get(one) == column.type and "<" not in column.type:
                        keys[one] = key
            stored = [StoredColumn(c.name, c.type) for c in columns]
            table = past.input_rows(name, stored, keys, list(self._wanted))
            self._tables[name] = table.slice(0, MOST_READ)
            self._answers.put(name, self._tables[name])
            self._kept[name] = list(range(self._tables[name].num_rows))

    def _reproduces(self) -> bool:
        """Return whether the query's result contains the published rows."""
        return not Counter(map(_key, self._wanted)) - Counter(map(_key, self._answers.rows()))

    def _keep(self, name: str, numbers: list[int]) -> None:
        self._kept[name] = numbers
        self._answers.only(name, numbers)

    def _reduce(self, name: str) -> None:
        """Remove pieces of an input that the published rows don't need, large pieces first."""
        size = len(self._kept[name])
        while size and self._trials > 0 and time.monotonic() < self._until:
            at = 0
            while at < len(self._kept[name]) and self._trials > 0 and time.monotonic() < self._until:
                before = self._kept[name]
                self._trials -= 1
                self._keep(name, before[:at] + before[at + size :])
                if not self._reproduces():
                    self._keep(name, before)
                    at += size
            size //= 2

    def written(self, called: str, where: str) -> tuple[Written, list[str]]:
        """Mask private values and build the test; return it with notes on the masks."""
        past, masks, notes = self._past, Masks(), []
        project, before = past.prepared.project, self._answers.rows()
        given, private_inputs = [], []
        for name in self._answers.inputs:
            table = self._tables[name].take(sorted(self._kept[name], reverse=True))
            private = private_columns(project, past.lineage, name)
            private_inputs += [f"{name}.{column}" for column in private]
            rows = [masks.row(row, private) for row in arrow_rows.plain(table)]
            self._put(name, rows, table.schema)
            given.append((f"ref('{name}')", tuple(rows)))
        expect = self._answers.rows()
        hidden = private_columns(project, past.lineage, past.name)
        if private_inputs:
            notes.append(f"Masked: {', '.join(private_inputs)}.")
            same = Counter(_key(masks.row(row, hidden)) for row in before) == Counter(map(_key, expect))
            if not same:
                notes.append(
                    "The query computes with masked values, so its rows differ from the published ones in more columns."
                )
        secret = {*hidden, *(column.partition(".")[2] for column in private_inputs)}
        says_none = where and not any(name in where for name in secret)
        description = f"Recorded from tick {past.published.tick}{', where ' + where if says_none else ''}."
        return Written(called, past.name, tuple(given), tuple(expect), description, past.as_of), notes

    def _put(self, name: str, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
        import pyarrow as pa

        try:
            self._answers.put(name, pa.Table.from_pylist(rows, schema=schema))
        except (ValueError, ArithmeticError):
            raise UsageError(f"{name} has more private values than its type can mask. Narrow --where") from None


def _key(row: Row) -> Key:
    """Return a row as texts; equal rows have equal texts."""
    return tuple(shown(value) for value in row.values())
