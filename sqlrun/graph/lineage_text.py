"""Lineage as a text tree, and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlrun.graph.lineage import ROWS, Derivation, Item, Lineage, Value

LONGEST = 100


def tree_up(lineage: Lineage, items: Iterable[Item]) -> list[str]:
    """Return the lines of a tree of columns' origins, down to seeds and sources; a repeated node has no subtree."""
    drawing = _Drawing(lineage, deciding=False)
    for item in items:
        drawing.draw(Value(item), drawing.sources)
    return drawing.lines


def tree_down(lineage: Lineage, items: Iterable[Item]) -> list[str]:
    """Return the lines of a tree of the columns computed from columns, with the models whose rows they filter."""
    lines: list[str] = []
    for item in items:
        drawing = _Drawing(lineage, deciding=True)
        reached = {made.value for made in lineage.down(item)}

        def made(value: Value, reached: set[Value] = reached) -> list[Value]:
            near = [one for one in lineage.readers(value.item.node) if one.value in reached]
            return [one.value for one in near if any(inner.item == value.item for inner in one.made_of)]

        drawing.draw(Value(item), made)
        lines += drawing.lines
    return lines


class _Drawing:
    """The lines of a tree.

    `deciding`: a line has the rows that its column filters, not the columns that filter its rows.
    """

    def __init__(self, lineage: Lineage, *, deciding: bool) -> None:
        self.lineage, self.deciding = lineage, deciding
        self.lines: list[str] = []
        self._drawn: set[Value] = set()
        self._first_values: dict[tuple[str, str], Value] = {}

    def sources(self, value: Value) -> list[Value]:
        """Return the direct origins of a value."""
        return list(self.lineage.derive(value).made_of)

    def draw(self, start: Value, children: Callable[[Value], list[Value]]) -> None:
        """Add the lines of a value and of its subtree."""
        left = [(start, "", "")]
        while left:
            value, first, rest = left.pop()
            below, details = children(value), self._details(value)
            if value in self._drawn and (below or details):
                self.lines.append(f"{first}{value}  (above)")
                continue
            self._drawn.add(value)
            self.lines.append(f"{first}{value}{self._type(value)}")
            self.lines += [f"{rest}{'│' if below else ' '}  {line}" for line in details]
            nodes = [(child, f"{rest}├─ ", f"{rest}│  ") for child in below[:-1]]
            nodes += [(child, f"{rest}└─ ", f"{rest}   ") for child in below[-1:]]
            left += reversed(nodes)

    def _type(self, value: Value) -> str:
        item = value.item
        if value.path or item.column == ROWS:
            return ""
        kind = self.lineage.kind(item.node)
        return f"  {self.lineage.types[item.node][item.column]}{f', {kind}' if kind != 'model' else ''}"

    def _details(self, value: Value) -> list[str]:
        made = self.lineage.derive(value)
        lines = [f"{step.how}  {short(step.text)}  {step.place}" for step in made.steps]
        lines = lines or ([made.how] if made.how == "copied" else [])
        if self.deciding:
            decided = [f"{node} ({', '.join(clauses)})" for node, clauses, _ in decides(self.lineage, value.item)]
            return [*lines, *([f"decides about rows of  {', '.join(decided)}"] if decided else [])]
        also = ", ".join(f"{item} ({', '.join(clauses)})" for item, clauses in made.also)
        first = self._first_values.setdefault((value.item.node, also), value)
        if also:
            lines.append(f"also depends on  {also if first == value else f'the same as {first}'}")
        return lines


def decides(lineage: Lineage, item: Item) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return the models whose rows a column filters: (model, clauses, columns whose rows it filters)."""
    found: dict[str, tuple[dict[str, None], list[str]]] = {}
    for made in lineage.readers(item.node):
        for one, clauses in made.also:
            if one == item:
                words, columns = found.setdefault(made.value.item.node, ({}, []))
                words.update(dict.fromkeys(clauses))
                columns.append(made.value.item.column)
    return [(node, tuple(words), tuple(columns)) for node, (words, columns) in found.items()]


def as_json(lineage: Lineage, text: str, items: Iterable[Item], direction: str) -> dict[str, Any]:
    """Return the lineage as JSON values: every column once, nearest first; `*` is the rows of a node."""
    start = list(items)
    if direction == "up":
        return {"of": text, "direction": direction, "columns": [_entry(lineage, made) for made in lineage.up(start)]}
    found: dict[Value, Derivation] = {Value(item): lineage.derive(Value(item)) for item in start}
    for item in start:
        found.update({made.value: made for made in lineage.down(item)})
    return {
        "of": text,
        "direction": direction,
        "columns": [{**_entry(lineage, made), "decides": _decided(lineage, made)} for made in found.values()],
    }


def _entry(lineage: Lineage, made: Derivation) -> dict[str, Any]:
    item = made.value.item
    return {
        **_named(made.value),
        "kind": lineage.kind(item.node),
        "type": "" if made.value.path else lineage.types[item.node].get(item.column, ""),
        "how": made.how,
        "steps": [{"how": step.how, "sql": step.text, "at": str(step.place)} for step in made.steps],
        "made_of": [_named(value) for value in made.made_of],
        "also": [{"node": one.node, "column": one.column, "clauses": list(clauses)} for one, clauses in made.also],
    }


def _decided(lineage: Lineage, made: Derivation) -> list[dict[str, Any]]:
    found = decides(lineage, made.value.item)
    return [{"node": node, "clauses": list(clauses), "columns": list(columns)} for node, clauses, columns in found]


def _named(value: Value) -> dict[str, str]:
    return {"node": value.item.node, "column": value.item.column, "field": value.field}


def short(text: str) -> str:
    """Return the text of an expression, cut if it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
