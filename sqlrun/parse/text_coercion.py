"""Texts compared with other types: Spark casts the text, DuckDB is more lenient or fails in a tick. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.parse import operand_types
from sqlrun.parse.functions import function_name
from sqlrun.parse.operand_types import CAST, COMPARED, NESTED
from sqlrun.parse.scopes import written
from sqlrun.parse.type_check import Tables, Walk
from sqlrun.transpile import ordering as duckdb_ordering
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.function_catalogue import THEMES
from sqlrun.transpile.ordering import fields
from sqlrun.transpile.spark_types import Kind
from sqlrun.transpile.trees import every

_LISTED = (exp.Coalesce, exp.Greatest, exp.Least, exp.In, exp.Array)
_ORDERING = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Greatest, exp.Least)
ORDERED = "Compare the fields or elements."
# Nodes that order values: the least, the greatest, the first.
_RANKED = (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin, exp.ArraySort, exp.ArrayMax, exp.ArrayMin, exp.Ordered)
ELSEWHERE = "DuckDB sorts NULLs inside them differently"
# Literals that both engines read as the same value.
_READ_ALIKE = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?Z?)?"),
    "boolean": re.compile(r"true|false", re.IGNORECASE),
}
# Nodes whose operands Spark casts from text to boolean.
_CONDITIONED = (exp.And, exp.Or, exp.Not, exp.Is, exp.CountIf, exp.LogicalAnd, exp.LogicalOr)
# Functions that take texts and cast other types to text.
_OF_TEXT = frozenset(THEMES["text"].split())
_WRITTEN_OTHERWISE = ("double", "float", "timestamp", "timestamp_ntz")
LENIENT = "DuckDB casts more leniently, or fails in a tick"
_WHOLE = re.compile(r"-?\d{1,9}")
MOMENTS = "Use timestamp_seconds(x), unix_seconds(x), date_from_unix_date(x) or unix_date(x)."
DAYS = "Use datediff(a, b), the number of days."
SECONDS = "Use timestampdiff(second, b, a), or another unit."


def found(tree: exp.Query, tables: Tables) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield comparisons of a text with a value of another type: (node, why, what to write instead)."""
    nodes = every(
        tree, *COMPARED, *_LISTED, exp.Between, exp.Case, exp.If, exp.Nvl2, exp.Cast, exp.Sub, *_CONDITIONED, *_RANKED
    )
    texts: list[exp.Expr] = [call for call in every(tree, exp.Func) if function_name(call) in _OF_TEXT]
    texts += every(tree, exp.DPipe)
    nodes += [call for call in every(tree, exp.Anonymous) if call.name.lower() == "decode"]
    if not nodes and not texts:
        return
    try:
        walk = Walk(tree, tables)
        for call in texts:
            yield from _written(call, walk)
        for node in nodes:
            if isinstance(node, exp.Cast):
                yield from _cast(node, walk.anywhere(node.this))
                continue
            if isinstance(node, _CONDITIONED):
                for part, _ in operand_types.conditions(node):
                    if walk.anywhere(part) == spark.STRING:
                        yield part, f"a string as a condition: {LENIENT}", CAST
                continue
            if isinstance(node, exp.Sub):
                yield from _between_times(node, walk)
                continue
            if isinstance(node, _ORDERING) and (nested := _nested(node, walk)) is not None:
                yield node, f"values of `{nested}` are ordered: {ELSEWHERE}", ORDERED
                continue
            if isinstance(node, _RANKED):
                yield from _unranked(node, walk)
                continue
            for group in _groups(node):
                other = _other([(part, walk.anywhere(part)) for part in group])
                if other is not None:
                    yield node, f"a string and a `{other}` are compared: {LENIENT}", CAST
    except (RecursionError, SqlglotError):  # nested too deeply for type inference
        return


def _written(call: exp.Expr, walk: Walk) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield values that are cast to text implicitly: doubles and times, which DuckDB writes differently."""
    for part in call.iter_expressions():
        kind = walk.anywhere(part)
        if kind is not None and kind.name in _WRITTEN_OTHERWISE:
            yield part, f"a `{kind}` becomes a string, which DuckDB formats differently", "Use cast(... as string)."
            return
    if isinstance(call, exp.Concat) and len(call.expressions) == 1:
        kind = walk.anywhere(call.expressions[0])
        if kind is not None and kind.name not in ("string", "array"):
            yield call, "concat() of one value, which DuckDB doesn't turn into a string", "Use cast(... as string)."


def _between_times(node: exp.Sub, walk: Walk) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield differences of two times: an interval of other units on DuckDB, and for two dates a number."""
    kinds = {walk.anywhere(node.this), walk.anywhere(node.expression)}
    if kinds <= {spark.DATE, spark.TIMESTAMP}:
        days = kinds == {spark.DATE}
        instead = DAYS if days else SECONDS
        yield (
            node,
            f"the interval between two {'dates' if days else 'times'}, which DuckDB computes differently",
            instead,
        )


def _nested(node: exp.Expr, walk: Walk) -> Kind | None:
    kinds = (walk.anywhere(value) for value in _groups(node)[0])
    return next((kind for kind in kinds if kind is not None and kind.name in NESTED), None)


def _unranked(node: exp.Expr, walk: Walk) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield orders of nested values whose fields aren't listed, so that DuckDB can't order them like Spark."""
    value = node.this if isinstance(node, exp.Ordered) else duckdb_ordering.operand(node)
    kind = None if isinstance(node, exp.Ordered) and _is_listed(node) else _hidden(value, walk, node)
    if kind is None:
        return
    listed = isinstance(node, exp.ArraySort | exp.ArrayMax | exp.ArrayMin)
    shown = kind.parts[0] if listed and value is node.this and kind.name == "array" else kind
    instead = ORDERED
    if shown.name == "struct" and not any(part.name in NESTED for part in shown.parts):
        instead = _written_out(node, value, shown)
    yield node, f"values of `{shown}` are ordered: {ELSEWHERE}", instead


def _is_listed(node: exp.Ordered) -> bool:
    """Return whether ORDER BY sorts rows without LIMIT or OFFSET: a table has no order, so it has no effect."""
    query = node.parent.parent if node.parent is not None else None
    return isinstance(query, exp.Query) and not (query.args.get("limit") or query.args.get("offset"))


def _hidden(value: exp.Expr, walk: Walk, node: exp.Expr) -> Kind | None:
    """Return the type of a nested value, or of one inside a struct, whose fields aren't listed; None if all are."""
    if isinstance(value, exp.Struct) and not isinstance(node, exp.Ordered):
        return next((kind for part in fields(value).values() if (kind := _hidden(part, walk, node))), None)
    kind = walk.anywhere(value)
    if kind is not None and value is node.this and isinstance(node, exp.ArraySort | exp.ArrayMax | exp.ArrayMin):
        return kind if kind.name == "array" and kind.parts[0].name in NESTED and not _by_keys(value, kind) else None
    return kind if kind is not None and kind.name in NESTED else None


def _by_keys(value: exp.Expr, kind: Kind) -> bool:
    """Return whether elements are the entries of one map: their keys are unique and not NULL."""
    is_map = isinstance(value, exp.Anonymous) and value.name.lower() == "map_entries"
    return is_map and kind.parts[0].parts[0].name not in NESTED


def _written_out(node: exp.Expr, value: exp.Expr, kind: Kind) -> str:
    """Return advice to list the fields of a struct, so that they are ordered one by one."""
    text = written(node.this if isinstance(node, exp.ArraySort | exp.ArrayMax | exp.ArrayMin) else value)
    if isinstance(value, exp.Column) and value.table.startswith("_"):  # a subquery without a name
        text = value.name
    if isinstance(node, exp.Ordered):
        return f"Order by its fields: {', '.join(f'{text}.{name}' for name in kind.fields)}."
    if isinstance(node, exp.ArraySort | exp.ArrayMax | exp.ArrayMin):
        listed = ", ".join(f"e.{name}" for name in kind.fields)
        return f"List the fields: transform({text}, e -> struct({listed}))."
    listed = ", ".join(f"{text}.{name}" for name in kind.fields)
    return f"List the fields, as struct({listed}), with filter (where {text} is not null)."


def _cast(node: exp.Cast, kind: Kind | None) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield casts between numbers and times, which DuckDB doesn't have and Spark has in part."""
    wanted = spark.of_tree(node.args["to"])
    if kind is not None and wanted is not None and {_family(kind), _family(wanted)} == {"number", "time"}:
        yield node, f"DuckDB can't cast `{kind}` to `{wanted}`", MOMENTS


def _family(kind: Kind) -> str:
    if spark.is_number(kind) or kind == spark.BOOLEAN:
        return "number"
    return "time" if kind in (spark.DATE, spark.TIMESTAMP) else ""


def _groups(node: exp.Expr) -> list[list[exp.Expr]]:
    """Return the groups of operands that need a common type."""
    if isinstance(node, exp.Anonymous):  # decode(value, key, then, ..., else); with two arguments it decodes bytes
        keys = node.expressions[1:-1:2] if len(node.expressions) > 2 else []
        return [[node.expressions[0], *keys]]
    return operand_types.groups(node)


def _other(parts: list[tuple[exp.Expr, Kind | None]]) -> Kind | None:
    """Return the type that a text is compared with; None if there is none, or both engines read the text alike."""
    others = [kind for _, kind in parts if kind is not None and kind not in (spark.STRING, spark.VOID)]
    texts = [part for part, kind in parts if kind == spark.STRING]
    if not others or all(_is_alike(text, others[0]) for text in texts):
        return None
    return others[0]


def _is_alike(text: exp.Expr, kind: Kind) -> bool:
    if not isinstance(text, exp.Literal):
        return False
    wanted = _WHOLE if spark.is_number(kind) else _READ_ALIKE.get(kind.name)
    return wanted is not None and wanted.fullmatch(text.name) is not None
