"""Constructs that a plain query may not contain, with their places, and the maximum size of a query. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlrun.transpile.trees import every, place_of

# TRANSFORM runs a script on Spark's machines. Spark replaces `${x}` from its settings.
REFUSED: Mapping[type[exp.Expr], str] = {
    exp.QueryTransform: "TRANSFORM",
    exp.Parameter: "a parameter",
    exp.SessionParameter: "a parameter",
    exp.Placeholder: "a parameter",
    exp.Version: "another version of a table",
    exp.Lock: "a lock",
    exp.Into: "INTO",
    exp.Command: "a command",
    exp.Stream: "STREAM",
    exp.Hint: "a hint",
    exp.MatchRecognize: "MATCH_RECOGNIZE",
    exp.TableSample: "a random sample",
}
# `a like any (..)` compares with patterns. Elsewhere any() is an aggregate, which must be written as bool_or().
HINT = "Write a plain SELECT over refs and sources. Use `{{ var('x') }}` for settings."
UNPLACED: Mapping[type[exp.Expr], str] = {
    exp.Hint: r"/\*\+",
    exp.Parameter: r"[@$][\w{]",
    exp.SessionParameter: "@@",
    exp.Placeholder: r"\?|:\w",
    exp.Lock: r"for\s+(?:update|share)",
    exp.TableSample: "tablesample",
    exp.MatchRecognize: "match_recognize",
}
# Pieces of SQL text that can contain other text; `open` is one that never ends.
PIECES = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|(?P<open>/\*|['\"`])|.", re.DOTALL
)

# Maximum number of tables that a query reads with its CTEs inlined: a CTE that reads the previous one twice doubles it.
MOST_READS = 5_000


def refused(tree: exp.Expr, sql: str) -> Iterable[tuple[int, int, str]]:
    """Yield constructs that a plain query may not contain, as (line, column, message)."""
    for node in every(tree, *REFUSED):
        line, column = place_of(cast(exp.Expression, node))
        if not line or isinstance(node, exp.Hint):
            # sqlglot records no place for these, so their text is searched outside quotes and comments.
            line, column = found(sql, UNPLACED.get(type(node), ""))
        yield line, column, f"{REFUSED[type(node)]} isn't allowed in a model"


def doubled(sql: str) -> tuple[int, int]:
    """Return the place of two quotes in a row inside double quotes, which engines read differently; (0, 0) if none."""
    before = ""
    for piece in PIECES.finditer(sql):
        text = piece[0]
        if text[0] == '"' and len(text) > 1 and ("''" in text or before[-1:] == '"'):
            return sql.count("\n", 0, piece.start()) + 1, piece.start() - sql.rfind("\n", 0, piece.start())
        before = text
    return 0, 0


def found(sql: str, pattern: str) -> tuple[int, int]:
    """Return line and column of a pattern in SQL text outside quotes and comments; (0, 0) if it isn't there."""
    for piece in PIECES.finditer(sql) if pattern else ():
        match = re.compile(pattern, re.IGNORECASE).match(sql, piece.start())
        if match:
            return sql.count("\n", 0, match.start()) + 1, match.start() - sql.rfind("\n", 0, match.start())
    return 0, 0


def namesakes(scope: Scope) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the name and the node of each table of a FROM that another one before it has the name of."""
    names: set[str] = set()
    for name, node in scope.references:
        if name and name in names:
            called = node.parent if isinstance(node.parent, exp.Subquery) else node
            yield name, called.args.get("alias") or called.this
        names.add(name)


def too_large(scopes: Iterable[Scope]) -> exp.Expr | None:
    """Return the first query that exceeds `MOST_READS` with its CTEs inlined; None if all are small enough."""
    reads: dict[int, int] = {}
    for scope in scopes:
        inner = [source for _, source in scope.selected_sources.values() if isinstance(source, Scope)]
        inner += [*scope.subquery_scopes, *scope.set_operation_scopes]
        reads[id(scope)] = 1 + sum(reads.get(id(other), 1) for other in inner)
        if reads[id(scope)] > MOST_READS:
            return scope.expression
    return None
