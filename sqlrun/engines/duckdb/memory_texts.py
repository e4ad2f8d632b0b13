"""SQL texts that execute a prepared statement on tables in memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlrun.engine_api import Append, Dialect, Load, Merge, Overwrite, Replace, Statement, StoredColumn
from sqlrun.incremental.parts import Parts, joined, split
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Prepared
from sqlrun.transpile.writer import cast, identifier


@dataclass(frozen=True, slots=True)
class Written:
    """The texts that update a table in memory, and the relations (table, row set) that they read.

    On DuckDB the texts are statements, run one after the other; on Spark one SELECT returns the whole table.
    """

    texts: tuple[str, ...]
    reads: tuple[tuple[str, str], ...]


def written(stage: Stage, prepared: Prepared, dialect: Dialect) -> Written:
    """Return a stage's prepared statement in the dialect of its engine."""
    if dialect == "spark":
        return Written((_on_spark(stage, prepared.statement),), prepared.reads)
    return Written(tuple(_on_duckdb(stage, prepared.statement)), prepared.reads)


def _on_duckdb(stage: Stage, statement: Statement) -> Iterable[str]:
    name = identifier(f"{stage.name}__new", "duckdb")
    match statement:
        case Append(sql=sql):
            yield f"insert into {name} {sql}"
        case Replace(sql=sql):
            yield f"create or replace temp table _result as {sql}"
            yield f"delete from {name}"
            yield f"insert into {name} from _result"
        case Overwrite(sql=sql, partitions=partitions):
            yield f"create or replace temp table _touched as {partitions}"
            yield f"create or replace temp table _result as {sql}"
            keys = [identifier(key, "duckdb") for key in stage.partition_by]
            on = " and ".join(f"t.{key} is not distinct from u.{key}" for key in keys)
            yield f"delete from {name} as t using _touched as u where {on}"
            yield f"insert into {name} from _result"
        case Merge():
            yield _merge_into(name, statement)
        case Load():
            raise AssertionError("seeds are given, not loaded")


def _merge_into(name: str, merge: Merge) -> str:
    """Return a Merge as DuckDB's MERGE INTO."""

    def quote(column: str) -> str:
        return identifier(column, "duckdb")

    on = " and ".join(
        f"t.{quote(k)} {'is not distinct from' if k in merge.null_safe else '='} s.{quote(k)}" for k in merge.key
    )
    clauses = []
    if merge.delete_when:
        clauses.append(f"when matched and {merge.delete_when} then delete")
    if merge.update:
        condition = f" and {merge.update_when}" if merge.update_when else ""
        sets = ", ".join(f"{quote(c)} = {e}" for c, e in merge.update if c not in merge.key)
        if sets:
            clauses.append(f"when matched{condition} then update set {sets}")
    condition = f" and {merge.insert_when}" if merge.insert_when else ""
    columns = ", ".join(quote(c) for c, _ in merge.insert)
    values = ", ".join(e for _, e in merge.insert)
    clauses.append(f"when not matched{condition} then insert ({columns}) values ({values})")
    return f"merge into {name} as t using ({merge.delta}) as s on {on} " + " ".join(clauses)


def _on_spark(stage: Stage, statement: Statement) -> str:
    """Return the SELECT of a stage's whole table after a statement."""
    old = identifier(f"{stage.name}__old", "spark")
    before: Parts = ()
    match statement:
        case Append(sql=sql):
            before, sql = split(sql)
            result = f"select * from {old} union all ({sql})"
        case Replace(sql=sql):
            before, result = split(sql)
        case Overwrite(sql=sql, partitions=partitions):
            # The parts of `partitions` are among the parts of `sql`.
            before, sql = split(sql)
            _, partitions = split(partitions)
            on = " and ".join(f"t.{p} <=> u.{p}" for p in (identifier(p, "spark") for p in stage.partition_by))
            names = ", ".join(_quoted(c) for c in stage.columns)
            remaining = f"select {names} from {old} as t left anti join ({partitions}) as u on {on}"
            result = f"{remaining} union all select {names} from ({sql})"
        case Merge():
            before, delta = split(statement.delta)
            result = _merged(old, replace(statement, delta=delta), stage.columns)
        case Load():
            raise AssertionError("seeds are given, not loaded")
    items = ", ".join(f"{cast(_quoted(c), c.type, 'spark')} as {_quoted(c)}" for c in stage.columns)
    return joined(before, f"select {items} from ({result})")


def _quoted(column: StoredColumn) -> str:
    return identifier(column.name, "spark")


def _merged(old: str, merge: Merge, columns: tuple[StoredColumn, ...]) -> str:
    """Return a table's rows after a MERGE, as a full outer join of the table and the delta.

    This lets Spark evaluate each of the statement's expressions without a table to write to.
    """
    keys = [(f"t.{identifier(k, 'spark')}", f"s.{identifier(k, 'spark')}", k in merge.null_safe) for k in merge.key]
    on = " and ".join(f"{t} {'<=>' if safe else '='} {s}" for t, s, safe in keys) or "true"
    update, insert = dict(merge.update), dict(merge.insert)
    items = []
    for column in columns:
        own = f"t.{_quoted(column)}"
        changed = own if column.name in merge.key else update.get(column.name, own)
        if merge.update_when:
            changed = f"case when {merge.update_when} then {changed} else {own} end"
        matched = cast(changed if merge.update else own, column.type, "spark")
        added = cast(insert.get(column.name, "null"), column.type, "spark")
        value = f"case when s._there is null then {own} when t._there is null then {added} else {matched} end"
        items.append(f"{value} as {_quoted(column)}")
    both = "t._there is not null and s._there is not null"
    tests = [f"not coalesce({both} and {merge.delete_when}, false)"] if merge.delete_when else []
    if merge.insert_when:
        tests.append(f"(t._there is not null or coalesce({merge.insert_when}, false))")
    where = f" where {' and '.join(tests)}" if tests else ""
    return (
        f"select {', '.join(items)} from (select *, 1 as _there from {old}) as t "
        f"full outer join (select *, 1 as _there from ({merge.delta})) as s on {on}{where}"
    )
