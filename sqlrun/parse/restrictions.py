"""What may not stand in a plain query, where it stands, and how large a query may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import cast

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlrun.transpile.trees import every, place_of

# What is no plain query. TRANSFORM runs a script on Spark's machines; `${x}` is filled in by Spark from its settings.
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
# `a like any (..)` compares with patterns; any() elsewhere is an aggregate, which bool_or() writes so that it is seen.
OF_PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike)
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
# The pieces of SQL text that can hide others; `open` is one that never ends.
PIECES = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|(?P<open>/\*|['\"`])|.", re.DOTALL
)

# How many reads of tables a query may be once each CTE is written out where it is read: a CTE that reads the one before
# twice doubles them.
MOST_READS = 5_000


def refused(tree: exp.Expr, sql: str) -> Iterable[tuple[int, int, str]]:
    """List what is no plain query: scripts, parameters, other versions of a table, locks (line, column, message)."""
    for node in every(tree, *REFUSED, exp.Any, exp.All):
        if isinstance(node, exp.Any | exp.All) and isinstance(node.parent, OF_PATTERNS):
            continue
        line, column = place_of(cast(exp.Expression, node))
        if not line or isinstance(node, exp.Hint):
            # sqlglot keeps no place of these: their text is looked for, outside of quotes and comments.
            line, column = found(sql, UNPLACED.get(type(node), ""))
        what = REFUSED.get(type(node)) or f"{node.key}()"
        yield line, column, f"{what} isn't allowed in a model"


def doubled(sql: str) -> tuple[int, int]:
    """Find two quotes in a row in a text between double quotes, which nobody reads as Spark does; (0, 0): none."""
    before = ""
    for piece in PIECES.finditer(sql):
        text = piece[0]
        if text[0] == '"' and len(text) > 1 and ("''" in text or before[-1:] == '"'):
            return sql.count("\n", 0, piece.start()) + 1, piece.start() - sql.rfind("\n", 0, piece.start())
        before = text
    return 0, 0


def found(sql: str, pattern: str) -> tuple[int, int]:
    """Find a piece of SQL text; (0, 0) where it is not."""
    for piece in PIECES.finditer(sql) if pattern else ():
        match = re.compile(pattern, re.IGNORECASE).match(sql, piece.start())
        if match:
            return sql.count("\n", 0, match.start()) + 1, match.start() - sql.rfind("\n", 0, match.start())
    return 0, 0


def too_large(scopes: Iterable[Scope]) -> exp.Expr | None:
    """Find the first query that is too large once its CTEs are written out where they are read."""
    reads: dict[int, int] = {}
    for scope in scopes:
        inner = [source for _, source in scope.selected_sources.values() if isinstance(source, Scope)]
        inner += [*scope.subquery_scopes, *scope.set_operation_scopes]
        reads[id(scope)] = 1 + sum(reads.get(id(other), 1) for other in inner)
        if reads[id(scope)] > MOST_READS:
            return scope.expression
    return None
