"""Aggregate: recompute affected groups; `stages.py` stores additive ones as state instead. Pure.

Sums and counts are linear, group by group: sum(A + dA) = sum(A) + sum(dA), where a row of weight w adds w times its
value. So if all aggregates of a query are of this kind, the stored sums plus the weighted sums of the changes are the
new sums, and no row of the input is read again. An average is a sum and a count. MIN and MAX aren't linear: when the
extreme row is deleted, the next one isn't stored. Over append-only input they are: max(A + dA) = max(max(A), max(dA)).
A view that needs nothing but itself and the change is called self-maintainable (Gupta & Mumick 1995).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import functional_dependencies, properties, types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.expressions import column, columns_in
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators import keyed
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.operators.constants import constant
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason
from sqlrun.transpile.trees import place_of

ADDITIVE = (exp.Sum, exp.Count, exp.CountIf, exp.Avg, exp.LogicalAnd, exp.LogicalOr)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Unary):
    """One row for each group: `keys` are named expressions, `items` named aggregate calls."""

    keys: tuple[tuple[str, exp.Expr], ...]
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of keys and calls, in this order."""
        return tuple(name for name, _ in (*self.keys, *self.items))

    def rows(self, script: Script, row_set: str) -> str:
        """Return the grouped rows."""
        child = script.rows(self.child, row_set)
        items = [*self.keys, *self.items]
        texts = [f"{script.expr(item)} as {script.name(name)}" for name, item in items]
        groups = script.groups(key for _, key in self.keys)
        grouping = f" group by {groups}" if groups else ""
        return f"select {', '.join(texts)} from {child}{grouping}"

    def changes(self, script: Script) -> list[str]:
        """Return the affected groups: post-state with +1, pre-state with -1."""
        node = self._with_plain_keys()
        keys = tuple(key.name for _, key in node.keys)
        return keyed.changes(node, keys, script)

    def _with_plain_keys(self) -> Aggregate:
        """Return the aggregate over computed keys as columns of its input, so that a semi join can compare them."""
        if all(isinstance(key, exp.Column) for _, key in self.keys):
            return self
        own = tuple((name, column(name)) for name in self.child.columns)
        computed = tuple((f"_key_{n}", key) for n, (_, key) in enumerate(self.keys))
        child = Project(self.child, (*own, *computed))
        keys = tuple((name, column(f"_key_{n}")) for n, (name, _) in enumerate(self.keys))
        return Aggregate(child, keys, self.items)

    def _plain(self) -> dict[str, str]:
        """Return the keys that are bare columns of the input, as {own name: name in the input}."""
        return {name: key.name for name, key in self.keys if isinstance(key, exp.Column)}

    def types(self) -> dict[str, Type]:
        """Return the types of keys and calls."""
        inner = self.child.types()
        return {name: types.of(item, inner) for name, item in (*self.keys, *self.items)}

    def grain(self) -> tuple[str, ...] | None:
        """Return the keys; without any there is one row."""
        return tuple(name for name, _ in self.keys)

    def has_copies(self) -> bool:
        """Return False: a group is one row."""
        return False

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies between the keys, and that all keys together determine the row."""
        return [
            *functional_dependencies.through(self.keys, self.child),
            *functional_dependencies.keyed([name for name, _ in self.keys], self),
        ]

    def is_additive(self) -> bool:
        """Return whether all aggregates add up over changes and there is a group key to store them under.

        MIN and MAX add up over append-only input.
        """
        grows = properties.only_grows(self.child)
        return bool(self.keys) and all(adds_up(call) or (grows and self._is_extreme(call)) for _, call in self.items)

    def _is_extreme(self, call: exp.Expr) -> bool:
        inner = call.this if isinstance(call, exp.Filter) else call
        if not isinstance(inner, exp.Min | exp.Max) or inner.expressions or isinstance(inner.this, exp.Distinct):
            return False
        text = types.of(inner.this, self.child.types()).text
        # The engines order NULLs inside nested values differently.
        return text not in ("", "double", "float") and "<" not in text

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return True: a group's value needs its other rows, or the stored sums that stand for them."""
        return True

    def keeps_rows(self) -> bool:
        """Return False: a changed group deletes its old row."""
        return False

    def reads_clock(self) -> bool:
        """Return False: `translate` computes expressions over the clock in a projection below."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return why the tick aggregates the whole table again: it is one group, which doesn't add up.

        A constant key doesn't split the table into groups.
        """
        if self.is_additive() or any(self._varies(key) for _, key in self.keys):
            return None
        line, place = place_of(self.items[0][1]) if self.items else (0, 0)
        why = "an aggregate over the whole table that isn't a sum or count"
        return Reason("SR526", why, "Add GROUP BY, or use sums and counts only.", line, place)

    def _varies(self, key: exp.Expr) -> bool:
        """Return whether a group key reads a column that is no constant."""
        return any(constant(self.child, name) is None for name in columns_in(key))

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: an affected group may have rows of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by group keys, which drops whole groups: an aggregate needs all rows of its group."""
        plain = self._plain()
        return below(self, relation, keys, {plain[c]: k for c, k in keys.items() if c in plain})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the input's affected keys if all are group keys: a group is affected if one of its rows is."""
        plain = self._plain()
        if not all(key in plain for key in keys):
            return of_changes(self, keys, script)
        return self.child.support(tuple(plain[key] for key in keys), script)


def adds_up(call: exp.Expr) -> bool:
    """Return whether an aggregate call is linear: a sum or a count of some kind, without DISTINCT."""
    inner = call.this if isinstance(call, exp.Filter) else call
    if isinstance(inner, exp.Count) and inner.expressions:
        return False  # count(a, b)
    return isinstance(inner, ADDITIVE) and not isinstance(inner.this, exp.Distinct)
