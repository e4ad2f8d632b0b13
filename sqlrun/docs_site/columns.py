"""The columns of each node with their lineage one step up and down, as JSON values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlrun.graph.lineage import ROWS, Derivation, Item, Lineage, Value

Values = dict[str, Any]


class Columns:
    """The lineage of all columns of a project, and what is made of each."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._made: dict[str, tuple[Derivation, ...]] = {}
        # By column: the columns that are made of it, and the models whose rows it filters with their clauses.
        self._feeds: dict[Item, dict[Item, None]] = {}
        self._filters: dict[Item, dict[str, dict[str, None]]] = {}
        for node in lineage.graph.order:
            items = (*lineage.columns(node), Item(node, ROWS))
            self._made[node] = tuple(lineage.derive(Value(item)) for item in items)
            for made in self._made[node]:
                for value in made.made_of:
                    self._feeds.setdefault(value.item, {})[made.value.item] = None
                for item, clauses in made.also:
                    words = self._filters.setdefault(item, {}).setdefault(node, {})
                    words.update(dict.fromkeys(clauses))

    def of(self, node: str, about: Mapping[str, Values]) -> list[Values]:
        """Return the columns of a node in their order, and last its rows under the name `*`.

        `about` has further facts of columns by their names; a name that isn't a column of the query is left out.
        """
        return [
            {
                "name": made.value.item.column,
                "type": self._lineage.types.get(node, {}).get(made.value.item.column, ""),
                **about.get(made.value.item.column, {}),
                "how": made.how,
                "steps": [{"how": step.how, "sql": step.text, "at": str(step.place)} for step in made.steps],
                "made_of": [[value.item.node, value.item.column, value.field] for value in made.made_of],
                "also": [[item.node, item.column, list(clauses)] for item, clauses in made.also],
                "feeds": [[item.node, item.column] for item in self._feeds.get(made.value.item, ())],
                "filters": [[name, list(words)] for name, words in self._filters.get(made.value.item, {}).items()],
            }
            for made in self._made[node]
        ]

    def names(self, node: str) -> Sequence[str]:
        """Return the names of a node's columns."""
        return [made.value.item.column for made in self._made[node][:-1]]
