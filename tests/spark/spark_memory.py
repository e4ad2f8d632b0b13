"""`Memory` whose statements are run by Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.engines.duckdb.memory import Computer
from sqlrun.transpile.writer import cast, identifier
from sqlrun.unit_tests.run.spark import OnSpark
from tests.support.memory import Bag, Memory, frozen


@dataclass
class SparkMemory(Memory):
    """Models over input tables, kept by Spark."""

    session: Any = None
    dialect: Dialect = "spark"

    def computer(self) -> Computer:
        return OnSpark(self.session)

    def step(self, as_of: datetime, whole: bool = False) -> None:
        for model in self.compiled:
            if model.stages:
                self.kept_in.computer.foresee(model.own, self._whole(model.name, as_of))
        super().step(as_of, whole)

    def oracle(self, name: str, as_of: datetime) -> Bag:
        rows = self.kept_in.computer.rows(self.kept_in, self._whole(name, as_of))
        return Counter(tuple(frozen(v) for v in row) for row in rows)

    def _whole(self, name: str, as_of: datetime) -> str:
        model = next(c for c in self.compiled if c.name == name)
        return f"select {', '.join(map(_item, model.own.public))} from ({self.full(name, as_of)})"


def _item(column: StoredColumn) -> str:
    name = identifier(column.name, "spark")
    return f"{cast(name, column.type, 'spark')} as {name}"
