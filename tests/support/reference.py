"""The reference evaluator's result for a `Memory`'s models, over the same input rows."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from tests.support import evaluator
from tests.support.memory import Memory


def answer(memory: Memory, name: str, as_of: datetime) -> Counter[tuple[Any, ...]]:
    """Evaluate the models in order and return the rows of `name`, in its contract's types."""
    tables = {}
    for table in memory.tables:
        names = ", ".join(f'"{n}"' for n, _ in table.columns)
        rows = memory.connection.execute(f'select {names} from "{table.name}__new"').fetchall()
        tables[table.name] = evaluator.relation(table.columns, rows)
    for model in memory.compiled:
        columns = [(c.name, c.type) for c in model.query.rendered.model.columns]
        found = evaluator.answer(model.query.tree, tables, as_of)
        order = [found.columns.index(n) for n, _ in columns]
        tables[model.name] = evaluator.relation(columns, [tuple(row[i] for i in order) for row in found.rows])
        if model.name == name:
            break
    return evaluator.bag(tables[name])
