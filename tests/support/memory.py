"""Models over input tables, compiled and maintained in DuckDB's memory as in unit tests of models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from typing import Any

import duckdb
from sqlglot import exp

from sqlrun.engine_api import Append, Dialect, Merge, Overwrite, Replace
from sqlrun.engines.duckdb import memory as unit_memory
from sqlrun.engines.duckdb.memory import Computer, OnDuckDB
from sqlrun.engines.duckdb.memory_texts import Written, written
from sqlrun.errors import Place
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Prepared, Tick, prepare
from sqlrun.parse import decimal_casts
from sqlrun.parse.parse import DIALECT, Query, query, schema_of
from sqlrun.plan.strategy_cost import has_choice
from sqlrun.project import Column, Config, Model, Project, Rendered
from sqlrun.transpile.parameters import bound
from sqlrun.transpile.writer import identifier
from sqlrun.transpile.writer import type_name as spelled

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
Bag = Counter[tuple[Any, ...]]
type_name = cache(spelled)


@dataclass
class Table:
    """An input of a test: `grows` means append-only, `required` are the columns that are never NULL."""

    name: str
    columns: tuple[tuple[str, str], ...]
    grain: tuple[str, ...] = ()
    grows: bool = False
    repeats: bool = False
    required: tuple[str, ...] = ()


def _contract(table: Table) -> tuple[Column, ...]:
    place = Place(table.name)
    return tuple(Column(n, k, "", place, nullable=n not in table.required) for n, k in table.columns)


@dataclass
class View:
    """A model of a test, with a query over plain table names."""

    name: str
    sql: str
    grain: tuple[str, ...] = ()
    materialized: str = "table"
    partition_by: tuple[str, ...] = ()


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("set threads = 1")
    return connection


def frozen(value: Any) -> Any:
    """Return a value of a result in a hashable form."""
    if isinstance(value, list):
        return tuple(frozen(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, frozen(v)) for k, v in value.items())
    return value


def bag(connection: duckdb.DuckDBPyConnection, sql: str) -> Bag:
    rows = connection.execute(sql).fetchall()
    return Counter(tuple(frozen(v) for v in row) for row in rows)


@dataclass
class Memory:
    """Models over input tables; `step` applies changes and updates every model."""

    tables: list[Table]
    views: list[View]
    connection: duckdb.DuckDBPyConnection = field(default_factory=connect)
    previous: datetime | None = None
    compiled: tuple[Compiled, ...] = ()
    dialect: Dialect = "duckdb"  # of the statements; the rows are in DuckDB in any case

    def __post_init__(self) -> None:
        self.kept_in = unit_memory.Memory(self.connection, self.computer())
        for table in self.tables:
            self.kept_in.hold(table.name, table.columns)
        self.compiled = self._compile()
        self.queries = {c.name: c.query for c in self.compiled}

    def computer(self) -> Computer:
        """Return the executor of statements."""
        return OnDuckDB()

    def _compile(self) -> tuple[Compiled, ...]:
        models: list[Model] = [self._model(t.name, "", _contract(t), t.grain, "table") for t in self.tables]
        catalog = compiler._Catalog(self._project(models), {}, {}, {}, {})
        for table, model in zip(self.tables, models, strict=True):
            model = replace(model, repeats=table.repeats)
            catalog.nodes[table.name] = compiler._scan(model, only_grows=table.grows)
        done: list[Compiled] = []
        for view in self.views:
            names = [m.name for m in models]
            sql = self._with_refs(view.sql, names)
            bare = self._model(view.name, sql, (), view.grain, view.materialized)
            columns = self._describe(bare, names, models, {c.name: c.query for c in done})
            model = self._model(view.name, sql, columns, view.grain, view.materialized)
            model = replace(model, config=replace(model.config, partition_by=view.partition_by))
            models.append(model)
            compiled = compiler.model(self._query(model, names, models), catalog)
            done.append(compiled)
            for stage in compiled.stages:
                self.kept_in.hold(stage.name, [(c.name, c.type) for c in stage.columns])
            if view.name not in catalog.nodes:
                grows = compiled.own.strategy == "append"
                catalog.nodes[view.name] = compiler._scan(model, only_grows=grows)
        return tuple(done)

    def _project(self, models: list[Model]) -> Project:
        return Project("", "test", "", {}, tuple(models), (), (), (), ())

    def _model(self, name: str, sql: str, columns: tuple[Column, ...], grain: tuple[str, ...], kind: str) -> Model:
        return Model(name, f"{name}.sql", sql, f"{name}.yml", "", grain, False, columns, Config(kind), ())

    def _with_refs(self, sql: str, names: list[str]) -> str:
        import sqlglot

        tree = sqlglot.parse_one(sql, read=DIALECT)
        ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            if table.name in names and table.name not in ctes:
                alias = table.alias_or_name
                table.set("db", exp.to_identifier("ref"))
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return tree.sql(DIALECT)

    def _query(self, model: Model, names: list[str], models: list[Model]) -> Query:
        lines = tuple(range(1, model.sql.count("\n") + 2))
        used = tuple(n for n in names if f"ref.{n}" in model.sql)
        rendered = Rendered(model, model.sql, used, (), lines, model.config)
        return query(rendered, schema_of(self._project(models)))

    def _describe(
        self, model: Model, names: list[str], models: list[Model], queries: dict[str, Query]
    ) -> tuple[Column, ...]:
        """Return the contract's columns with the types of DuckDB's result."""
        from sqlrun.parse.parse import _parse, _qualify

        rendered = Rendered(model, model.sql, (), (), tuple(range(1, model.sql.count("\n") + 2)), model.config)
        schema = schema_of(self._project(models))
        tree = decimal_casts.typed(_qualify(_parse(rendered), rendered, schema))
        bare = Query(rendered, tree, ())
        views = [v.name for v in self.views]  # the inputs' tables don't exist yet
        text = compiler.whole_query({**queries, model.name: bare}, model.name, views, Moment(START, None), "duckdb")
        columns = []
        for name, kind, *_ in self.connection.execute(f"describe {text}").fetchall():
            kind = kind.replace("HUGEINT", "BIGINT").replace("UBIGINT", "BIGINT")
            spark = exp.DataType.build(kind.replace(" WITH TIME ZONE", ""), dialect="duckdb").sql("spark").lower()
            columns.append(Column(name, spark.replace("timestamp_ntz", "timestamp"), "", Place(name)))
        return tuple(columns)

    def change(self, table: str, rows: Iterable[tuple[int, tuple[str | None, ...]]]) -> None:
        """Record changes of an input for the next step: weight and values as text."""
        spec = next(t for t in self.tables if t.name == table)
        tuples = []
        for weight, values in rows:
            texts = ", ".join(
                f"cast({'null' if v is None else chr(39) + v.replace(chr(39), chr(39) * 2) + chr(39)}"
                f" as {type_name(kind, 'duckdb')})"
                for v, (_, kind) in zip(values, spec.columns, strict=True)
            )
            tuples.append(f"({texts}, {weight})")
        if tuples:
            self.connection.execute(f'insert into "{table}__changes" values {", ".join(tuples)}')

    def step(self, as_of: datetime, whole: bool = False) -> None:
        """Run one tick over the recorded changes; `whole` recomputes tables that could be maintained incrementally."""
        moment, fresh, changed = Moment(as_of, self.previous), self.previous is None, self.load()
        for model in self.compiled:

            def write(stage: Stage, seen: frozenset[str], model: Compiled = model) -> Written | None:
                tick = Tick(moment, seen, fresh, whole and has_choice(stage))
                wanted = stage.method == "full" or whole  # compiled only on demand, because it is slow
                prepared = prepare(stage, tick, self.dialect, self.full(model.name, as_of) if wanted else "")
                if prepared is None:
                    return None
                assert_bound(prepared)
                prepared = replace(prepared, statement=bound(prepared.statement, moment.parameters, self.dialect))
                return written(stage, prepared, self.dialect)

            changed = self.kept_in.tick(model.stages, changed, write)
        self.forget()
        self.previous = as_of

    def load(self) -> set[str]:
        """Apply the recorded changes to the inputs; return the names of the changed tables."""
        return {table.name for table in self.tables if self._apply(table)}

    def forget(self) -> None:
        """Clear the changes for the next step."""
        self.kept_in.forget(table.name for table in self.tables)

    def _apply(self, table: Table) -> bool:
        return self.kept_in.load(table.name)

    def full(self, name: str, as_of: datetime) -> str:
        """Return the oracle: the model's whole query over the post-states."""
        views = [c.name for c in self.compiled if c.is_view]
        return compiler.whole_query(self.queries, name, views, Moment(as_of, None), self.dialect)

    def kept(self, name: str) -> Bag:
        model = next(c for c in self.compiled if c.name == name)
        return bag(self.connection, f'select {self._public(model)} from "{name}__new"')

    def held(self) -> dict[str, Bag]:
        """Return all rows of all tables of models, including hidden tables and columns."""
        found = {}
        for stage in (stage for model in self.compiled for stage in model.stages):
            listed = ", ".join(identifier(c.name, "duckdb") for c in stage.columns)
            found[stage.name] = bag(self.connection, f'select {listed} from "{stage.name}__new"')
        return found

    def oracle(self, name: str, as_of: datetime) -> Bag:
        model = next(c for c in self.compiled if c.name == name)
        items = ", ".join(
            f"cast({identifier(c.name, 'duckdb')} as {type_name(c.type, 'duckdb')})" for c in model.own.public
        )
        return bag(self.connection, f"select {items} from ({self.full(name, as_of)})")

    def _public(self, model: Compiled) -> str:
        return ", ".join(identifier(c.name, "duckdb") for c in model.own.public)


def assert_bound(prepared: Prepared) -> None:
    """Require that a statement reads the declared relations only: an engine supplies no others."""
    match prepared.statement:
        case Merge(delta=text) | Append(sql=text) | Replace(sql=text):
            used = set(re.findall(r'"(\w+?)__(old|new|changes)"', text))
        case Overwrite(sql=text, partitions=partitions):
            used = set(re.findall(r'"(\w+?)__(old|new|changes)"', f"{text} {partitions}"))
    assert used <= set(prepared.reads), f"not bound: {used - set(prepared.reads)}"
