"""Rows for a lot of checks, read from a tick's tables. Shell: the engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlrun.check import key_ranges
from sqlrun.check.check_plan import LargeRows, Lot, Rows
from sqlrun.engine_api import GivenKeys, Relation
from sqlrun.expectations.validate import scope
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain import changed_rows
from sqlrun.maintain.changed_rows import Change, feed
from sqlrun.maintain.tick_context import TickContext
from sqlrun.transpile.writer import identifier, same, semi_join

if TYPE_CHECKING:
    import pyarrow as pa


def held(context: TickContext, model: Compiled, lot: Lot, changed: pa.Table, commits: tuple[int, ...]) -> Rows:
    """Return a change by `commits`, in memory, and the rows that share a key with it if a check needs keys."""
    keyed = None
    if any(scope(one) == "key" for one in lot.expectations):
        near = key_ranges.of(changed, lot.key, model.own.partition_by)
        known = frozenset(name for name in lot.key if not changed.column(name).null_count)
        query, table = _keyed(context, model, lot, near, known, commits)
        keyed = context.reader.query(query, (table,), {"changed": changed.select(list(lot.key))})
    return Rows(changed, keyed, partial(_whole, context, model))


def large(context: TickContext, model: Compiled, lot: Lot, change: Change) -> LargeRows:
    """Return lazy access to the rows of a change that is too large for memory; nothing is read yet."""
    rows = changed_rows.query(context, model)
    changes = feed(context, model, change.commits, context.plan.tables[model.name].where)
    keyed, table = _keyed(context, model, lot)
    query = f"with changed as ({rows}) {keyed}"
    return LargeRows(
        count=change.count,
        parts=partial(context.reader.parts, rows, (changes,), changed_rows.LARGE),
        ask=lambda select: context.reader.query(f"with keyed as ({query}) {select}", (table, changes)),
        keyed=partial(context.reader.query, query, (table, changes)),
        whole=partial(_whole, context, model),
        dialect=context.reader.dialect,
    )


def _whole(context: TickContext, model: Compiled) -> pa.Table:
    table, version = context.plan.tables[model.name], context.states[model.name].version
    whole = Relation("whole", table.spec.path, table.public, "new", version=version, where=table.where)
    return context.reader.query("select * from whole", (whole,))


def _keyed(
    context: TickContext,
    model: Compiled,
    lot: Lot,
    near: key_ranges.Ranges = (),
    known: frozenset[str] = frozenset(),
    commits: tuple[int, ...] = (),
) -> tuple[str, Relation]:
    """Return the query for the table's rows that share a key with a row of `changed`.

    It reads only files that may have such a row. `known`: keys without NULL in the given table `changed`, which `=`
    compares faster. `commits`: the ones that made the change.
    """
    dialect = context.reader.dialect
    table = context.plan.tables[model.name]
    grain = model.query.rendered.model.grain
    pairs = [(f"l.{identifier(k, dialect)}", f"r.{identifier(k, dialect)}", k in known) for k in lot.key]
    on = " and ".join(f"{left} = {right}" if sure else same(left, right, dialect) for left, right, sure in pairs)
    columns = list(dict.fromkeys((*grain, *lot.key)))
    if any(one.kwargs.get("row_condition") is not None for one in lot.expectations):
        columns = [column.name for column in table.public]  # a condition may name any column
    names = ", ".join(f"l.{identifier(k, dialect)}" for k in columns)
    version = context.states[model.name].version
    whole = Relation(
        "held",
        table.spec.path,
        tuple(column for column in table.public if column.name in columns),
        "new",
        version=version,
        where=table.where,
        ranges=near,
        given_keys=GivenKeys("changed", tuple(name for name in lot.key if name in known), commits=commits),
    )
    return f"select {names} from held as l {semi_join(dialect)} changed as r on {on}", whole
