"""What the columns of a few models are made of, as hovers show it. Shell: this process remembers models."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlrun.graph.lineage import Derivation, Lineage, Value
from sqlrun.graph.lineage_text import short
from sqlrun.language_server.index import Origins
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared

# Most columns that one line names.
MOST = 12


@dataclass(slots=True)
class Traced:
    """The columns of open models and of the models that they read. A model is traced again once it has changed.

    To trace 1,000 models takes seconds, so no others are: an open text names columns of no others.
    """

    texts: Origins = field(default_factory=dict)
    _known: dict[str, tuple[object, dict[str, str]]] = field(default_factory=dict)

    def trace(self, prepared: Prepared, opened: Collection[str]) -> None:
        """Trace the models of files that are open, contracts included."""
        queries = {query.name: query for query in prepared.queries}
        models = [query.rendered.model for query in prepared.queries]
        names = [model.name for model in models if model.file in opened or model.contract_file in opened]
        near = dict.fromkeys((*names, *(ref for name in names for ref in queries[name].rendered.refs)))
        chosen = {name: (_inputs(queries[name], queries), queries[name]) for name in near if name in queries}
        new = [query for name, (key, query) in chosen.items() if self._known.get(name, (None,))[0] != key]
        lineage = Lineage(prepared.project, prepared.graph, new)
        known = {name: self._known[name] for name in chosen if name in self._known}
        known |= {query.name: (chosen[query.name][0], dict(_origin_texts(lineage, query))) for query in new}
        self._known, self.texts = known, {name: columns for name, (_, columns) in known.items()}


def _inputs(query: Query, queries: dict[str, Query]) -> object:
    """Return all that the lineage of a query depends on: a star of it is what its inputs have."""
    return query.rendered.sql, tuple((ref, queries[ref].columns) for ref in query.rendered.refs if ref in queries)


def _origin_texts(lineage: Lineage, query: Query) -> Iterator[tuple[str, str]]:
    for name, item in zip(query.columns, lineage.columns(query.name), strict=True):
        yield name, _text(lineage.derive(Value(item)))


def _text(made: Derivation) -> str:
    """Return what a column is made of, as a line of Markdown."""
    named = [f"`{value}`" if value.item.column != "*" else str(value) for value in made.made_of]
    more = f" and {len(named) - MOST} more" if len(named) > MOST else ""
    listed = ", ".join(named[:MOST]) + more
    steps = ", ".join(f"`{short(step.text)}`" for step in made.steps[:1])
    match made.how:
        case "copied":
            return f"copied from {listed}"
        case "computed":
            return f"computed from {listed} by {steps}"
        case _:
            return f"constant: {steps}" if steps else "constant"
