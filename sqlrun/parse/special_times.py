"""Texts that Spark reads as a time by its own clock: 'now', 'today' and others, and times without a day. Pure.

Spark reads them so only as literals; the same value in a column is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.parse.functions import function_name
from sqlrun.parse.type_check import Walk
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.function_catalogue import THEMES
from sqlrun.transpile.trees import every, has

_SPECIAL = re.compile(r"\s*(now|today|tomorrow|yesterday|epoch|t?\d{1,2}:\d.*)\s*", re.IGNORECASE | re.DOTALL)
_TIMES = (spark.DATE, spark.TIMESTAMP, spark.TIMESTAMP_NTZ)
_OF_TIMES = frozenset(THEMES["dates and times"].split())
HINT = "Use current_timestamp() or current_date(), or write the time: timestamp '1970-01-01 00:00:00'."


def found(walk: Walk) -> Iterator[tuple[exp.Expr, str]]:
    """Yield such texts where Spark would read them as times, and casts of texts that are computed from constants."""
    special = [node for node in every(walk.tree, exp.Literal) if node.is_string and _SPECIAL.fullmatch(node.name)]
    for node in special:
        try:
            is_time = _is_time(node, walk)
        except (RecursionError, SqlglotError):
            is_time = True
        if is_time:
            yield node, f"'{node.name.strip()}' isn't the time of the tick"
    for cast in every(walk.tree, exp.Cast):
        if spark.of_tree(cast.to) in _TIMES and _is_computed_constant(cast.this) and not _is_of_tick(cast.this, walk):
            yield cast, "a time computed from a constant may not be the time of the tick"


def _is_computed_constant(value: exp.Expr) -> bool:
    known = (exp.Column, exp.Literal, exp.Null, exp.Cast)
    if isinstance(value, (*known, exp.Query, exp.Paren)) or has(value, exp.Column, exp.Query, exp.Identifier):
        return False
    return any(node.is_string for node in every(value, exp.Literal)) and not has(value, exp.Cast)


def _is_of_tick(value: exp.Expr, walk: Walk) -> bool:
    """Return whether a value is a time that is computed from the tick's, as in another zone."""
    try:
        return has(value, exp.CurrentTimestamp, exp.CurrentDate) and walk.anywhere(value) in _TIMES
    except (RecursionError, SqlglotError):
        return False


def _is_time(node: exp.Expr, walk: Walk) -> bool:
    """Return whether a text is converted to a time in its place: by a cast, a function, a comparison, a common type."""
    above = node.parent
    while isinstance(above, exp.Expr) and not isinstance(above, exp.Query):
        if isinstance(above, exp.Cast):
            return spark.of_tree(above.to) in _TIMES
        if isinstance(above, exp.Func) and function_name(above) in _OF_TIMES:
            return True
        beside = [
            part for part in above.iter_expressions() if part is not node and not isinstance(part, exp.Identifier)
        ]
        if any(walk.anywhere(part) in _TIMES for part in beside):
            return True
        node, above = above, above.parent
    return False
