"""A case on Delta tables: each statement is run by a real engine, if needed by another one each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from deltalake import write_deltalake

from sqlrun.engine_api import Engine, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import create as delta_create
from sqlrun.engines.delta import file_layout
from sqlrun.engines.delta import table as delta_table
from sqlrun.incremental import pruning
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Tick, prepare
from sqlrun.transpile.writer import identifier
from tests.support.case_files import Case
from tests.support.memory import Bag, Memory, frozen
from tests.support.projects import READER

APP = "case"


@dataclass
class OnDelta:
    """Plays a case on Delta tables in parallel with `memory`, which has the same tables without files, tested apart.

    `draw` returns the engine of each statement, `wrote` lists the writer of each commit. `read` has the version of each
    input that a table has read.
    """

    folder: Path
    case: Case
    draw: Callable[[], Engine]
    memory: Memory = field(init=False)
    specs: dict[str, TableSpec] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)
    read: dict[str, dict[str, int]] = field(default_factory=dict)
    wrote: list[str] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.memory = Memory(self.case.tables, self.case.views)
        self.stages = [stage for model in self.memory.compiled for stage in model.stages]
        for table in self.case.tables:
            columns = tuple(StoredColumn(name, kind, name not in table.required) for name, kind in table.columns)
            self._create(TableSpec(table.name, str(self.folder / table.name), columns))
        for stage in self.stages:
            self._create(TableSpec(stage.name, str(self.folder / stage.name), stage.columns, stage.partition_by))

    def _create(self, spec: TableSpec) -> None:
        delta_create.create(spec)
        self.specs[spec.name], self.heads[spec.name] = spec, 0

    def play(self) -> None:
        """Run the steps; after each, every table has the rows of its table in memory, hidden columns included."""
        for step in self.case.steps:
            moment = Moment(step.as_of, self.memory.previous)
            for table, rows in step.changes:
                self.memory.change(table, rows)
            self.memory.step(step.as_of)
            self.number += 1
            left = {table for table, rows in step.changes if any(weight < 0 for weight, _ in rows)}
            for table in {table for table, _ in step.changes}:
                self._arrive(table, whole=table in left)
            for stage in self.stages:
                self._write(stage, moment)
            for stage in self.stages:
                assert self._kept(stage.name) == self._wanted(stage), (
                    f"{self.case.place}, line {step.line}: {stage.name}"
                )

    def _arrive(self, name: str, *, whole: bool) -> None:
        """Update an input to its state in memory: by an append if rows were only added, else by a full write."""
        spec, table = self.specs[name], delta_table.open_table(self.specs[name].path)
        listed = ", ".join(identifier(c.name, "duckdb") for c in spec.columns)
        came = "" if whole else f' except all select {listed} from "{name}__old"'
        rows = self.memory.connection.execute(f'select {listed} from "{name}__new"{came}').fetchall()
        schema = pa.schema(table.schema().to_arrow())
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
        arrays = [pa.array(list(column), kind.type) for column, kind in zip(columns, schema, strict=True)]
        data, mode = pa.table(arrays, schema=schema), "overwrite" if whole else "append"
        write_deltalake(table, data, mode=mode, commit_properties=delta_table.commit(APP, self.number, {}))  # type: ignore[call-overload]
        self.heads[name] = delta_table.head(spec.path) or 0

    def _write(self, stage: Stage, moment: Moment) -> None:
        """Update a table, as `maintain.py` does."""
        engine, fresh = self.draw(), stage.name not in self.read
        read = self.read.get(stage.name, {})
        commits = {} if fresh else {name: tuple(range(read[name] + 1, self.heads[name] + 1)) for name in stage.inputs}
        changed = frozenset(stage.inputs) if fresh else frozenset(name for name in stage.inputs if commits[name])
        self.memory.dialect = engine.dialect
        full = self.memory.full(stage.name, moment.as_of) if stage.method == "full" else ""
        self.memory.dialect = "duckdb"
        prepared = prepare(stage, Tick(moment, changed, fresh), engine.dialect, full)
        self.read[stage.name] = {name: self.heads[name] for name in stage.inputs}
        if prepared is None:
            return
        needed = pruning.needed(stage, moment, fresh=fresh)
        base = self.heads[stage.name]
        relations = []
        for name, row_set in prepared.reads:
            columns = self._columns(stage, name)
            version = base if name == stage.name else (read.get(name, 0) if row_set == "old" else self.heads[name])
            bounds = tuple((r.column, r.low, r.high) for r in needed.get((name, row_set), ()))  # type: ignore[call-overload]
            relations.append(
                Relation(
                    f"{name}__{row_set}", self.specs[name].path, columns, row_set, version,  # type: ignore[arg-type]
                    commits.get(name, ()) if row_set == "changes" else (), ranges=bounds,
                )
            )  # fmt: skip
        write = Write(
            self.specs[stage.name],
            base,
            self.number,
            APP,
            tuple(relations),
            prepared.statement,
            parameters=moment.parameters,
        )
        # Rows are marked as deleted in one step, and copied without them in the next.
        with mock.patch.object(file_layout, "COPIED", file_layout.COPIED * (self.number % 2)):
            self.heads[stage.name] = engine.write(write).version
        self.wrote += [engine.name] if self.heads[stage.name] > base else []

    def _columns(self, stage: Stage, name: str) -> tuple[StoredColumn, ...]:
        """Return the columns that a statement reads: all of its own table, of another one the public ones."""
        other = next((s for s in self.stages if s.name == name), None)
        return self.specs[name].columns if other is None or name == stage.name else other.public

    def _kept(self, name: str) -> Bag:
        spec = self.specs[name]
        held = Relation(name, spec.path, spec.columns, "new", self.heads[name])
        rows: list[dict[str, Any]] = READER.query(f'select * from "{name}"', (held,)).to_pylist()
        return Counter(tuple(frozen(value) for value in row.values()) for row in rows)

    def _wanted(self, stage: Stage) -> Bag:
        listed = ", ".join(identifier(c.name, "duckdb") for c in stage.columns)
        rows = self.memory.connection.sql(f'select {listed} from "{stage.name}__new"').to_arrow_table().to_pylist()
        return Counter(tuple(frozen(value) for value in row.values()) for row in rows)
