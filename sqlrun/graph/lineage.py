"""Lineage of columns through the whole graph: values, and the columns that filter their rows. Pure.

A column's values come from other columns: copied, read from a struct or an array, or computed. Its rows also depend on
filters, join conditions and groups. The two are separate here. sqlglot.lineage doesn't separate them and parses a query
again for each column, so sqlrun has its own trace over sqlglot's scopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.graph.column_lineage import Found, Walk
from sqlrun.graph.graph import Graph
from sqlrun.load.yaml_reader import did_you_mean, listed, spelled
from sqlrun.parse.located_problems import as_written
from sqlrun.parse.parse import REF, Query
from sqlrun.parse.scopes import written
from sqlrun.parse.source_map import source_place
from sqlrun.project import Model, Project, Seed

ROWS = "*"


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """A column of a node, under its name in the graph; the column `*` stands for the node's rows."""

    node: str
    column: str

    def __str__(self) -> str:
        name = self.node.removeprefix("source:")
        return f"rows of {name}" if self.column == ROWS else f"{name}.{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Value:
    """The origin of a value: `path` has the steps into it; () for the whole column."""

    item: Item
    path: tuple[str, ...] = ()

    @property
    def field(self) -> str:
        """Return the path as text, such as `[].unit_price`."""
        return "".join(self.path)

    def __str__(self) -> str:
        return f"{self.item}{self.field}"


@dataclass(frozen=True, slots=True)
class Step:
    """An expression that computes a value in its model, the outermost first."""

    how: str  # computed | constant | taken (an element of an array or a map)
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Derivation:
    """The derivation of a value in its model. `also` has the columns that filter its rows, with their clauses."""

    value: Value
    how: str  # copied | computed | constant | given (a seed's or a source's own)
    steps: tuple[Step, ...] = ()
    made_of: tuple[Value, ...] = ()
    also: tuple[tuple[Item, tuple[str, ...]], ...] = ()


class Lineage:
    """A project's columns, whose lineage is traced on request."""

    def __init__(self, project: Project, graph: Graph, queries: Iterable[Query]) -> None:
        self.graph = graph
        self._walks = {query.name: (query, Walk(cast(exp.Query, query.tree))) for query in queries}
        self._sources = {source.table: source.node for source in project.sources}
        tables: tuple[Model | Seed, ...] = (*project.models, *project.seeds)
        self.types: dict[str, Mapping[str, str]] = {
            **{noun.name: {c.name: c.type for c in noun.columns} for noun in tables},
            **{self._sources[s.table]: {c.name: c.type for c in s.columns} for s in project.sources},
        }
        self.places: dict[str, Place] = {
            **{noun.name: noun.columns[0].place for noun in tables},
            **{self._sources[s.table]: s.place for s in project.sources},
        }
        self._rank = {name: number for number, name in enumerate(graph.order)}
        self._done: dict[Value, Derivation] = {}
        self._from: dict[Value, frozenset[Item]] = {}

    def kind(self, node: str) -> str:
        """Return the kind of a node: model, seed or source."""
        if node in self.graph.sources:
            return "source"
        return "model" if node in self._walks else "seed"

    def columns(self, node: str) -> tuple[Item, ...]:
        """Return a node's columns; a model's in the order of its query."""
        names = self._walks[node][0].columns if node in self._walks else tuple(self.types[node])
        return tuple(Item(node, name) for name in names)

    def derive(self, value: Value) -> Derivation:
        """Return the derivation of a column, or of a field of it, in its own model."""
        if value not in self._done:
            item = value.item
            if item.node in self._walks:
                query, walk = self._walks[item.node]
                found = walk.rows() if item.column == ROWS else walk.column(item.column, value.path)
                self._done[value] = self._derivation(value, query, found)
            else:
                self._done[value] = Derivation(value, "given")
        return self._done[value]

    def _derivation(self, value: Value, query: Query, found: Found) -> Derivation:
        also: dict[Item, dict[str, None]] = {}
        for table, column, clause in found.also:
            also.setdefault(self._item(table, column), {})[clause] = None
        made_of = [Value(self._item(table, column), path) for table, column, path in found.values]
        steps = tuple(_step(query, bool(made_of), *step) for step in found.steps)
        computed = any(step.how == "computed" for step in steps)
        how = "computed" if computed else "copied" if made_of else "constant"
        return Derivation(
            value,
            how,
            tuple(dict.fromkeys(steps)),
            tuple(sorted(set(made_of), key=lambda one: (self._rank[one.item.node], one))),
            tuple((one, tuple(also[one])) for one in sorted(also, key=lambda one: (self._rank[one.node], one))),
        )

    def _item(self, table: exp.Table, column: str) -> Item:
        return Item(table.name if table.db == REF else self._sources[table.name], column)

    def up(self, start: Iterable[Item]) -> tuple[Derivation, ...]:
        """Return the derivations of columns and of all their origins, each once, nearest first."""
        found: dict[Value, Derivation] = {}
        left = [Value(item) for item in start]
        while left:
            value = left.pop(0)
            if value not in found:
                found[value] = self.derive(value)
                left.extend(found[value].made_of)
        return tuple(found.values())

    def down(self, start: Item) -> tuple[Derivation, ...]:
        """Return the derivations of the columns that are computed from a column, in graph order."""
        return tuple(made for made in self.below(start.node) if start in self._origins(made.value))

    def _origins(self, value: Value) -> frozenset[Item]:
        """Return all origins of a value, through every model. It uses a stack, not recursion, for long chains."""
        left = [value]
        while left:
            one = left[-1]
            made_of = self.derive(one).made_of
            missing = [inner for inner in made_of if inner not in self._from]
            if missing:
                left.extend(missing)
                continue
            self._from[one] = frozenset({one.item}).union(*(self._from[inner] for inner in made_of))
            left.pop()
        return self._from[value]

    def below(self, node: str) -> tuple[Derivation, ...]:
        """Return the derivations of all columns of the direct and indirect readers of a node, in graph order."""
        reached, left = {node}, [node]
        while left:
            for name in self.graph.children[left.pop()]:
                if name not in reached:
                    reached.add(name)
                    left.append(name)
        return self._derived(reached - {node})

    def readers(self, node: str) -> tuple[Derivation, ...]:
        """Return the derivations of all columns of the direct readers of a node, in graph order."""
        return self._derived(self.graph.children[node])

    def _derived(self, models: Iterable[str]) -> tuple[Derivation, ...]:
        ordered = sorted(models, key=lambda name: self._rank[name])
        return tuple(self.derive(Value(item)) for name in ordered for item in (*self.columns(name), Item(name, ROWS)))


def _step(query: Query, made: bool, node: exp.Expr, line: int, column: int) -> Step:
    how = "taken" if isinstance(node, exp.Explode | exp.Inline) else "computed" if made else "constant"
    text = as_written(written(node), query.rendered)
    return Step(how, text, source_place(query.rendered, line or 1, column or 1)[0])


def chosen(lineage: Lineage, text: str) -> tuple[Item, ...]:
    """Return the columns that `MODEL`, `MODEL.column`, `GROUP.TABLE` or `GROUP.TABLE.column` names.

    Raises: ProjectError (SR402 for an unknown node, SR403 for an unknown column), with similar names.
    """
    nodes = {name.removeprefix("source:"): name for name in lineage.graph.order}
    wanted = text.removeprefix("source:")
    if wanted in nodes:
        return lineage.columns(nodes[wanted])
    node, _, column = wanted.rpartition(".")
    if node not in nodes:
        near = did_you_mean(wanted, nodes) or did_you_mean(node, nodes)
        hint = f"Models, seeds and sources: {listed(sorted(nodes))}.{near}"
        message = f"unknown model, seed, source or column `{text}`"
        raise ProjectError([Problem("SR402", Place("models"), message, hint)])
    names = [item.column for item in lineage.columns(nodes[node])]
    column = spelled(column, names)
    if column not in names:
        message = f"unknown column `{column}` of `{node}`"
        hint = f"Columns: {', '.join(names)}.{did_you_mean(column, names)}"
        raise ProjectError([Problem("SR403", lineage.places[nodes[node]], message, hint)])
    return (Item(nodes[node], column),)
