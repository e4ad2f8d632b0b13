"""The columns that a query names: which names mean one column, and where its SQL has them. Pure.

A name is followed through CTEs, subqueries and stars. A column that a SELECT takes under its own name ends the way: the
SELECT's own column is another one, and keeps its name by `new as old`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlrun.parse.scopes import scopes_of, source_of
from sqlrun.project import Rendered
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.trees import every

# The owner of the columns that a query returns.
ROOT = "#"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A column of a table, such as `ref.orders`, or of a query inside of a model, which has a number."""

    owner: str
    column: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the letters `start` to `end` of a rendered query.

    `naming`: the column that would have to be renamed too if the edit can't write `as`: that of the SELECT, or the one
    that it takes.
    """

    start: int
    end: int
    text: str
    naming: Symbol | None = None


class Resolved:
    """A qualified query, with the meaning of each of its names."""

    def __init__(self, tree: exp.Expr) -> None:
        self.scopes = scopes_of(cast(exp.Query, tree))
        self.queries = {id(scope.expression): scope.expression for scope in self.scopes.inner.values()}
        self._owners = {key: f"{ROOT}{number}" for number, key in enumerate(self.queries)}
        self._owners[id(self.scopes.root.expression)] = ROOT

    def owner(self, query: exp.Expr) -> str:
        """Return the owner of the columns of a query, or of what else has columns in FROM."""
        return self._owners.get(id(query), f"{ROOT}{id(query)}")

    def symbol(self, column: exp.Column) -> Symbol | None:
        """Return what a column of the query means; None if it isn't known."""
        node: exp.Expr | None = column
        while node is not None and id(node) not in self.scopes.inner:
            node = node.parent
        if node is None:
            return None
        if not column.table:  # ORDER BY names an output column of its own query
            return Symbol(self.owner(node), column.name.lower())
        source = source_of(self.scopes.inner[id(node)], column.table)
        if source is None:
            return None
        if isinstance(source, Scope):
            return Symbol(self.owner(source.expression), column.name.lower())
        owner = f"{source.db}.{source.name}" if source.db else self.owner(source)
        return Symbol(owner, column.name.lower())

    def outputs(self) -> Iterator[tuple[exp.Query, str, list[exp.Expr]]]:
        """Yield each query with its owner and the columns that it returns."""
        for query in self.queries.values():
            if isinstance(query, exp.Query):
                yield query, self.owner(query), query.selects


class Names:
    """The names of one model's query."""

    def __init__(self, rendered: Rendered, tree: exp.Expr) -> None:
        self.rendered = rendered
        resolved = Resolved(tree)
        self.links: dict[Symbol, set[Symbol]] = {}
        self.references: dict[int, Symbol] = {}
        self.named: dict[int, Symbol] = {}
        self.columns: dict[str, list[str]] = {}
        # Columns without a place in the text that aren't a star's: those of USING.
        self.joined: set[Symbol] = set()
        # Owners of queries with an alias.
        self.aliased: dict[str, list[str]] = {}
        for column in every(tree, exp.Column):
            self._refer(resolved, column)
        for query, owner, items in resolved.outputs():
            self.columns[owner] = [item.alias_or_name.lower() for item in items]
            if isinstance(query, exp.SetOperation):
                first = resolved.owner(_first(query))
                for name in self.columns[owner]:
                    self._link(Symbol(owner, name), Symbol(first, name))
            else:
                for item in items:
                    self._name(resolved, owner, item)
        for node in every(tree, exp.CTE, exp.Subquery):
            if node.alias:
                self.aliased.setdefault(node.alias.lower(), []).append(resolved.owner(node.this))
        self.raw = _parsed(rendered.sql)

    def _refer(self, resolved: Resolved, column: exp.Column) -> None:
        symbol, start = resolved.symbol(column), _start(column.this)
        if symbol is None:
            return
        if start is not None:
            self.references.setdefault(start, symbol)
        elif column.find_ancestor(exp.Join, exp.Query) is not None and not isinstance(
            column.find_ancestor(exp.Join, exp.Query), exp.Query
        ):
            self.joined.add(symbol)

    def _name(self, resolved: Resolved, owner: str, item: exp.Expr) -> None:
        """Note how a SELECT names one of its columns: by `as`, by the column that it takes, or by a star."""
        symbol, value = Symbol(owner, item.alias_or_name.lower()), item.unalias()
        alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
        if (start := _start(alias)) is not None:
            # A set operation gives the names of its first SELECT, with their places, to the others.
            self.named.setdefault(start, symbol)
            return
        last = value.expression if isinstance(value, exp.Dot) else value.this if isinstance(value, exp.Column) else None
        if not isinstance(last, exp.Identifier) or last.name.lower() != symbol.column:
            return
        start = _start(last)
        if start is not None:
            self.named.setdefault(start, symbol)
        elif isinstance(value, exp.Column) and (source := resolved.symbol(value)) is not None:
            self._link(symbol, source)

    def _link(self, one: Symbol, other: Symbol) -> None:
        self.links.setdefault(one, set()).add(other)
        self.links.setdefault(other, set()).add(one)

    def at(self, start: int) -> list[Symbol]:
        """Return what the name at a place of the rendered SQL means: a column that is read, then one that is made."""
        found = [self.references.get(start), self.named.get(start)]
        return [symbol for symbol in found if symbol is not None]

    def identifiers(self, name: str) -> Iterator[exp.Identifier]:
        """Yield each name of the rendered SQL that is written so, in any case; not those of a struct's fields."""
        for node in every(self.raw, exp.Identifier):
            is_field = isinstance(node.parent, exp.PropertyEQ) and node.arg_key == "this"
            if node.name.lower() != name.lower() or _start(node) is None:
                continue
            if not is_field or _gives_its_name(node):
                yield node

    def edits(self, chosen: Iterable[Symbol], old: str, new: str) -> list[Edit]:
        """Return the changes of the rendered SQL that rename some columns."""
        symbols = frozenset(chosen)
        found: dict[int, Edit] = {}
        for node in self.identifiers(old):
            edit = self._edit(node, symbols, new)
            if edit is not None:
                found[edit.start] = edit
        for edit in self._branches(found, old, new):
            found[edit.start] = edit
        return [found[start] for start in sorted(found)]

    def _edit(self, node: exp.Identifier, chosen: frozenset[Symbol], new: str) -> Edit | None:
        start, end = node.meta["start"], node.meta["end"] + 1
        text = self.rendered.sql[start:end]
        plain = Edit(start, end, new)
        read, made = self.references.get(start), self.named.get(start)
        parent = node.parent
        if read in chosen:
            if made is not None and made not in chosen:
                return Edit(start, end, f"{new} as {text}", made)
            return Edit(start, end, f"{new} as {text}") if _gives_its_name(node) else plain
        if made in chosen:
            return plain if isinstance(parent, exp.Alias) else Edit(start, end, f"{text} as {new}", read)
        return plain if read is None and self._follows(node, chosen) else None

    def _follows(self, node: exp.Identifier, chosen: frozenset[Symbol]) -> bool:
        """Return whether a name that the qualified query lacks means a renamed column."""
        parent = node.parent
        if isinstance(parent, exp.TableAlias) and node.arg_key == "columns":
            owners = self.aliased.get(parent.name.lower(), [])
            return len(owners) == 1 and Symbol(owners[0], node.name.lower()) in chosen
        if not isinstance(parent, exp.Column) or node.arg_key != "this" or parent.table:
            return False
        if isinstance(parent.parent, exp.Star):
            return any(symbol.owner != ROOT for symbol in chosen)
        # ORDER BY, GROUP BY and others may name a column of their own query: of a union by its first SELECT.
        query = parent.find_ancestor(exp.Select, exp.SetOperation)
        query = _selects(query)[0] if isinstance(query, exp.SetOperation) else query
        items = query.expressions if query is not None else []
        return any(self.named.get(_naming(item)) in chosen for item in items if _named_so(item, node.name))

    def _branches(self, found: Mapping[int, Edit], old: str, new: str) -> Iterator[Edit]:
        """Yield the changes of aliases in the other SELECTs of a set operation, which have no meaning but look odd."""
        for union in every(self.raw, exp.SetOperation):
            branches = [part for part in _selects(union) if not any(item.is_star for item in part.selects)]
            for index, item in enumerate(branches[0].selects if branches else ()):
                if not isinstance(item, exp.Alias) or _naming(item) not in found:
                    continue
                for other in branches[1:]:
                    same = other.selects[index] if index < len(other.selects) else None
                    if isinstance(same, exp.Alias) and same.alias.lower() == old.lower():
                        meta = same.args["alias"].meta
                        yield Edit(meta["start"], meta["end"] + 1, new)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with its changes."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _parsed(sql: str) -> exp.Expr:
    statements = sqlglot.parse(sql, read=DIALECT)
    return next(one for one in statements if one is not None and one.key != "semicolon")


def _start(node: object) -> int | None:
    start = node.meta.get("start") if isinstance(node, exp.Identifier) else None
    return start if isinstance(start, int) else None


def _gives_its_name(node: exp.Identifier) -> bool:
    """Return whether a column is a field of a struct that has its name: `struct(x)`."""
    parent = node.parent.parent if isinstance(node.parent, exp.Column) else node.parent
    value = parent.expression if isinstance(parent, exp.PropertyEQ) else None
    return isinstance(value, exp.Column) and _start(value.this) == _start(node) == _start(parent.this if parent else 0)


def _naming(item: exp.Expr) -> int:
    """Return the place of the word that names a column of a SELECT; -1 if there is none."""
    word = item.args.get("alias") if isinstance(item, exp.Alias) else item.expression or item.this
    start = _start(word)
    return -1 if start is None else start


def _named_so(item: exp.Expr, name: str) -> bool:
    return item.alias_or_name.lower() == name.lower()


def _selects(union: exp.SetOperation) -> list[exp.Query]:
    """Return the SELECTs of a set operation, the first one first."""
    found: list[exp.Query] = []
    left: list[exp.Expr] = [union]
    while left:
        node = left.pop()
        if isinstance(node, exp.SetOperation):
            left += [node.expression, node.this]
        elif isinstance(node, exp.Subquery):
            left.append(node.this)
        elif isinstance(node, exp.Query):
            found.append(node)
    return found


def _first(union: exp.SetOperation) -> exp.Query:
    node: exp.Expr = union.this
    while isinstance(node, exp.Subquery):
        node = node.this
    return cast(exp.Query, node)
