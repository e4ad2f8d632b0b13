"""Reference evaluator: a qualified query over Python bags, independent of sqlrun.

It reads sqlglot's tree (Spark's dialect), not sqlrun's operators, so it checks translation, rules and engines
alike. It is slow and simple on purpose. It raises `Unknown` for an unknown construct, and for a nondeterministic
result, such as a LIMIT between rows that are equal under ORDER BY.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal, localcontext

from sqlglot import exp

from tests.support.evaluator.queries import Relation, query
from tests.support.evaluator.scope import World
from tests.support.evaluator.values import Failure, Unknown, Value, to_type

__all__ = ["Failure", "Relation", "Unknown", "answer", "bag", "relation", "stable"]

Columns = Sequence[tuple[str, str]]


def relation(columns: Columns, rows: Iterable[Sequence[Value]]) -> Relation:
    """Return rows as a table, with values cast to the columns' types (Spark SQL)."""
    kinds = [exp.DataType.build(kind, dialect="databricks") for _, kind in columns]
    with localcontext(Context(prec=60)):
        made = [tuple(to_type(v, k) for v, k in zip(row, kinds, strict=True)) for row in rows]
    return Relation([name for name, _ in columns], made)


def answer(tree: exp.Expression, tables: Mapping[str, Relation], as_of: datetime) -> Relation:
    """Return the result of a qualified query; `ref.x` reads the table x."""
    with localcontext(Context(prec=60)):
        return query(tree, World(dict(tables), as_of), {}, None)


def bag(found: Relation) -> Counter[tuple[Value, ...]]:
    """Return the number of each distinct row; doubles are equal to nine digits."""
    return stable(Counter(found.rows))


def stable(rows: Counter[tuple[Value, ...]]) -> Counter[tuple[Value, ...]]:
    """Return a bag with doubles rounded to nine digits, because engines add them up in any order."""
    result: Counter[tuple[Value, ...]] = Counter()
    for row, count in rows.items():
        result[tuple(_stable(v) for v in row)] += count
    return result


def _stable(value: Value) -> Value:
    if isinstance(value, float):
        return Decimal(f"{value:.9g}").normalize() + 0
    return tuple(_stable(v) for v in value) if isinstance(value, tuple) else value
