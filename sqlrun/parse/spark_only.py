"""Report calls that run on Spark alone, because DuckDB would return something else. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from sqlglot import exp

from sqlrun.errors import Problem
from sqlrun.parse import decimal_casts, located_problems, text_coercion, unsupported_syntax
from sqlrun.parse.functions import unlike
from sqlrun.parse.parse import Query
from sqlrun.parse.type_check import Tables
from sqlrun.transpile.trees import every, place_of

ADVICE = "Use the Spark engine."
# What RE2 says of a pattern that Java may take.
OF_PATTERNS = re.compile(
    "invalid (repetition size|perl operator|escape sequence|character class|named capture)|bad repetition operator|"
    "no argument for repetition|missing [])]|unexpected [)]|trailing .$|pattern too large"
)


def problems(queries: Iterable[Query], admitted: Collection[str] = (), advice: str = ADVICE) -> tuple[Problem, ...]:
    """Return a problem (SR310) for every call that DuckDB can't run as Spark does, in the analyst's file.

    `advice` says how to run it on Spark.
    """
    found: list[Problem] = []
    for query in queries:
        found += _located(query, (*unlike(query.tree, admitted), *_unsettled(query)), advice)
    return tuple(dict.fromkeys(found))


def mixed_problems(query: Query, tables: Tables, advice: str = ADVICE) -> tuple[Problem, ...]:
    """Return a problem (SR310) for each comparison or join of types that DuckDB casts differently."""
    return tuple(dict.fromkeys(_located(query, text_coercion.found(cast(exp.Query, query.tree), tables), advice)))


def _located(query: Query, found: Iterable[tuple[exp.Expr, str, str]], advice: str) -> Iterator[Problem]:
    for node, why, instead in found:
        line, column = place_of(cast(exp.Expression, node))
        hint = f"{instead} {advice}".strip()
        yield located_problems.problem("SR310", query.rendered, line or 1, column or 1, why, hint)


def _unsettled(query: Query) -> Iterator[tuple[exp.Expr, str, str]]:
    for node, what in decimal_casts.unsettled(query.tree):
        why = f"{what} of values of unknown type runs on Spark only. DuckDB: it may return other digits"
        yield node, why, "Cast the values: cast(x as decimal(18, 2)) or cast(x as double)."


def instead(query: Query, why: str) -> str:
    """Return what to write instead of a query that DuckDB can't run, by its syntax and DuckDB's message."""
    if any(not lateral.args.get("view") for lateral in every(query.tree, exp.Lateral)):
        return "Use `from ... lateral view explode(x) l as element`."
    if why.startswith("UNNEST()") and "MAP(" in why:
        return unsupported_syntax.GENERATOR
    if OF_PATTERNS.match(why):
        return "Write another pattern: DuckDB's are RE2's, not Java's."
    return "Cast the arguments to the types that it accepts."


def marked(tree: exp.Expression) -> exp.Expression:
    """Return the tree with a comment that has its place behind each column, so that written SQL leads back to it."""
    made = tree.copy()
    for column in made.find_all(exp.Column):
        line, at = place_of(column)
        if line:
            column.add_comments([f"{line}:{at}"])
    return made
