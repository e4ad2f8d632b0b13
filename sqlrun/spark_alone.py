"""What of a project runs on Spark alone: a problem for each call that DuckDB would answer otherwise. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

from sqlglot import exp

from sqlrun.errors import Problem
from sqlrun.functions import unlike
from sqlrun.incremental.algebra import place_of
from sqlrun.parse import Query
from sqlrun.places import source_place

ADVICE = "Use the Spark engine."


def problems(queries: Iterable[Query], admitted: Collection[str] = (), advice: str = ADVICE) -> tuple[Problem, ...]:
    """List every call of these queries that DuckDB can't make as Spark does (SR310), in the analyst's own file.

    `advice` says how to have Spark make it.
    """
    found: list[Problem] = []
    for query in queries:
        for node, why, instead in unlike(query.tree, admitted):
            line, column = place_of(cast(exp.Expression, node))
            place, excerpt = source_place(query.rendered, line or 1, column or 1)
            problem = Problem("SR310", place, why, f"{instead} {advice}".strip(), excerpt)
            if problem not in found:
                found.append(problem)
    return tuple(found)
