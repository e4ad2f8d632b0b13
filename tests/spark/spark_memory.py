"""Runs compiled stages on Spark without files: `Memory` with its statements evaluated by Spark.

The rows stay in DuckDB's tables and reach Spark as temporary views over Arrow. A MERGE is emulated by a full outer
join, so that Spark evaluates each of its expressions; what the table becomes and what the whole query gives are
collected by one job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlrun.engines.protocol import Append, Dialect, Merge, Overwrite, Replace, StoredColumn
from sqlrun.engines.spark_modes import choose
from sqlrun.incremental.sql import cast, identifier, type_name
from tests.memory import Bag, Memory, bag

# Views over so few rows need one task, not two.
SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.sql.execution.arrow.pyspark.enabled": "true"}


@dataclass
class SparkMemory(Memory):
    """Models over input tables, kept by Spark."""

    session: Any = None
    dialect: Dialect = "spark"
    as_of: datetime | None = None
    _whole: dict[str, Bag] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        choose(self.session, 0)
        for key, value in SETTINGS.items():
            self.session.conf.set(key, value)

    def step(self, as_of: datetime, whole: bool = False) -> None:
        self.as_of = as_of
        self._whole.clear()
        super().step(as_of, whole)

    def oracle(self, name: str, as_of: datetime) -> Bag:
        """Give the whole query's answer on Spark: that of this step's statement, else a run of its own."""
        if name not in self._whole:
            model = next(c for c in self.compiled if c.name == name)
            self._collect(f"select {_casts(model.own.public)} from ({self.full(name, as_of)})", "_spark_whole")
            self._whole[name] = bag(self.connection, "from _spark_whole")
        return self._whole[name]

    def _execute(self, name: str, statement: Any) -> None:
        stage = next(s for c in self.compiled for s in c.stages if s.name == name)
        match statement:
            case Append(sql=sql):
                result = f"select * from {identifier(name + '__old', 'spark')} union all ({sql})"
            case Replace(sql=sql):
                result = sql
            case Overwrite(sql=sql, touched=touched):
                parts = [identifier(p, "spark") for p in stage.partition_by]
                on = " and ".join(f"t.{p} <=> u.{p}" for p in parts)
                names, old = ", ".join(_quoted(c) for c in stage.columns), identifier(name + "__old", "spark")
                kept = f"select {names} from {old} as t left anti join ({touched}) as u on {on}"
                result = f"{kept} union all select {names} from ({sql})"
            case Merge():
                result = emulated(name, statement, stage.columns)
        text = f"select 'kept' as _side, {_casts(stage.columns)} from ({result})"
        model = next((c for c in self.compiled if c.stages and c.own.name == name), None)
        if model is not None and self.as_of is not None:
            public = {c.name for c in model.own.public}
            items = ", ".join(_item(c) if c.name in public else f"null as {_quoted(c)}" for c in stage.columns)
            text += f" union all select 'whole' as _side, {items} from ({self.full(model.name, self.as_of)})"
        self._collect(text, "_spark_result")
        names = ", ".join(identifier(c.name, "duckdb") for c in stage.columns)
        self.connection.execute(f'delete from "{name}"')
        self.connection.execute(f"insert into \"{name}\" select {names} from _spark_result where _side = 'kept'")
        if model is not None:
            shown = ", ".join(identifier(c.name, "duckdb") for c in model.own.public)
            self._whole[model.name] = bag(self.connection, f"select {shown} from _spark_result where _side = 'whole'")

    def _collect(self, text: str, table: str) -> None:
        """Run a query on Spark and keep its rows in a table of DuckDB's."""
        for name, flavour, schema in self._relations():
            if f"{name}__{flavour}" in text:
                self._register(f"{name}__{flavour}", schema)
        arrow = self.session.sql(text).toArrow()
        self.connection.register("_arrow", arrow)
        self.connection.execute(f"create or replace temp table {table} as from _arrow")
        self.connection.unregister("_arrow")

    def _relations(self) -> list[tuple[str, str, list[tuple[str, str]]]]:
        tables = [(t.name, list(t.columns)) for t in self.tables]
        tables += [(s.name, [(c.name, c.type) for c in s.columns]) for c in self.compiled for s in c.stages]
        return [
            (name, flavour, columns + ([("_weight", "bigint")] if flavour == "changes" else []))
            for name, columns in tables
            for flavour in ("old", "new", "changes")
        ]

    def _register(self, relation: str, columns: list[tuple[str, str]]) -> None:
        names = ", ".join(identifier(n, "duckdb") for n, _ in columns)
        arrow = self.connection.sql(f'select {names} from "{relation}"').to_arrow_table()
        kinds = [(identifier(n, "spark"), type_name(k, "spark")) for n, k in columns]
        if arrow.num_rows:
            frame = self.session.createDataFrame(arrow, ", ".join(f"{n} {k}" for n, k in kinds))
        else:  # Arrow's conversion fails on a nested column without rows
            nothing = ", ".join(f"cast(null as {k}) as {n}" for n, k in kinds)
            frame = self.session.sql(f"select {nothing} where false")
        frame.createOrReplaceTempView(identifier(relation, "spark"))


def _quoted(column: StoredColumn) -> str:
    return identifier(column.name, "spark")


def _item(column: StoredColumn) -> str:
    return f"{cast(_quoted(column), column.type, 'spark')} as {_quoted(column)}"


def _casts(columns: tuple[StoredColumn, ...]) -> str:
    return ", ".join(_item(c) for c in columns)


def emulated(name: str, merge: Merge, columns: tuple[StoredColumn, ...]) -> str:
    """Write what a table is after a MERGE, as a full outer join of the table and the delta."""
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
    old = identifier(f"{name}__old", "spark")
    return (
        f"select {', '.join(items)} from (select *, 1 as _there from {old}) as t "
        f"full outer join (select *, 1 as _there from ({merge.delta})) as s on {on}{where}"
    )
