"""Where a tested model computes its columns, to explain a failure. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlrun.graph.graph import Graph
from sqlrun.graph.lineage import Item, Lineage, Value
from sqlrun.parse.parse import Query
from sqlrun.project import Project


@dataclass(frozen=True, slots=True)
class Made:
    """A column's type in the contract, and where its value is computed: a place and its SQL."""

    type: str
    place: str = ""
    sql: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a model apart from its tests: `follow` finds on demand where a column is computed."""

    file: str = ""
    grain: tuple[str, ...] = ()
    types: Mapping[str, str] | None = None
    follow: Callable[[str], tuple[str, str]] | None = None

    def column(self, name: str) -> Made:
        """Return how a column is computed; an empty result for a column that the model lacks, as in a test of a CTE."""
        kind = (self.types or {}).get(name)
        if kind is None or self.follow is None:
            return Made("")
        return Made(kind, *self.follow(name))


UNKNOWN = Facts()


def tested(project: Project, graph: Graph, queries: Iterable[Query]) -> Callable[[str], Facts]:
    """Return a function from a model's name to its facts; it traces columns on demand."""
    known = {query.name: query for query in queries}

    def of(name: str) -> Facts:
        query = known.get(name)
        if query is None:
            return UNKNOWN
        model = query.rendered.model

        def follow(column: str) -> tuple[str, str]:
            steps = Lineage(project, graph, [query]).derive(Value(Item(name, column))).steps
            return (str(steps[0].place), steps[0].text) if steps else ("", "")

        types = {column.name: column.type for column in model.columns}
        return Facts(model.file, model.grain, types, follow)

    return of
