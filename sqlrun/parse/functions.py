"""The functions that a model may call, and those among them that DuckDB can't run. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from sqlglot import exp

from sqlrun.parse import unsupported_syntax
from sqlrun.transpile import calls as duckdb_calls
from sqlrun.transpile import function_catalogue
from sqlrun.transpile.dialect import SPELLED
from sqlrun.transpile.function_catalogue import CLOCKS, FORBIDDEN, VOLATILE

# Nodes that are written as operators, not as calls.
_OPERATORS = (exp.And, exp.Or, exp.Xor, exp.Cast, exp.TryCast, exp.RegexpLike, exp.Like, exp.ILike, exp.Exists)
_LISTED = function_catalogue.names()


def refusal(function: exp.Func, admitted: Collection[str] = ()) -> tuple[str, str, str] | None:
    """Return why a model may not call a function, as (code, message, hint); None if it may.

    `admitted`: names that the project's settings add to the list.

    >>> import sqlglot
    >>> refusal(sqlglot.parse_one("java_method('a', 'b')", read="sparksql"))[0]
    'SR305'
    """
    name = function_name(function)
    if not name:
        return None
    if name in VOLATILE:
        message = f"{name}() isn't deterministic"
        return (
            "SR501",
            message,
            "Remove it. A model may depend on its inputs and on current_timestamp(), the time of the tick.",
        )
    clockless = name in ("unix_timestamp", "to_unix_timestamp") and not getattr(function, "expressions", None)
    if name in CLOCKS or clockless:
        return "SR501", f"{name}() isn't the time of the tick", "Use current_timestamp() or current_date()."
    if name in unsupported_syntax.WINDOWS:
        return "SR305", f"function {name}() isn't allowed in a model", unsupported_syntax.WINDOW
    if name in FORBIDDEN:
        message = f"function {name}() isn't allowed in a model"
        return "SR305", message, "Remove it. A model reads declared refs and sources only."
    if name in _LISTED or name in admitted:
        return None
    near = difflib.get_close_matches(name, sorted({*_LISTED, *admitted}), 1)
    hint = "Use a function of docs/functions.md, or list your own under `functions` in pyproject.toml."
    return "SR305", f"unknown function {name}()", hint + (f" Did you mean {near[0]}()?" if near else "")


def function_name(function: exp.Func) -> str:
    """Return a function's name as the analyst wrote it, in lower case; "" for operators and inserted nodes."""
    spelled = function.meta.get(SPELLED)
    if spelled is not None:
        return str(spelled)
    if isinstance(function, exp.Anonymous):
        return function.name.lower()
    return "" if isinstance(function, _OPERATORS) else str(function.sql_name()).lower()


def unlike(tree: exp.Expr, admitted: Collection[str] = ()) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield the calls that run on Spark alone: (node, what DuckDB does differently, what to write instead)."""
    for function in tree.find_all(exp.Func):
        name = function_name(function)
        if name in function_catalogue.SPARK_ONLY:
            why, instead = function_catalogue.SPARK_ONLY[name]
            yield function, f"{name}() runs on Spark only. DuckDB: {why}", instead
        elif name in admitted and name not in _LISTED:
            yield function, f"{name}() runs on Spark only: pyproject.toml lists it under `functions`", ""
    for node, error in duckdb_calls.unlike(tree):
        name = _named(node)
        if name.removesuffix("()") not in function_catalogue.SPARK_ONLY:
            yield node, f"{name} runs on Spark only in this form. DuckDB: {error.why}", error.instead


def _named(node: exp.Expr) -> str:
    for part in (node, *node.walk(bfs=True)):
        if isinstance(part, exp.Func) and function_name(part):
            return f"{function_name(part)}()"
    return f"`{node.key}`"
