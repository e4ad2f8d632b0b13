"""Join: each side's changes against the other side's rows. Pure.

An inner join is bilinear, so its change telescopes (DBSP, Budiu et al. 2023; Gupta & Mumick 1995):
    R1 S1 - R0 S0 = (R1 - R0) S0 + R1 (S1 - S0) = dR S0 + R1 dS
where 0 is the pre-state and 1 the post-state. R1 S0 is added and subtracted, so it cancels. The pair dR dS is counted
once, in the second term, since R1 = R0 + dR.

Left, semi and anti joins are linear in their left side only. A first match on the right deletes the padded row of a
left join and the row of an anti join; a second match doesn't. So the change splits into two steps:
    d(L join R) = dL join R1 + (L0 join R1 - L0 join R0)
The second part is empty for a left row whose partners are all unchanged. It is computed only for the left rows of the
pre-state that match a changed right row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from sqlrun.incremental import functional_dependencies, properties, types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type
from sqlrun.incremental.expressions import columns_in
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import restrict
from sqlrun.incremental.operators.affected_keys import numbered, of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile import writer
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Join(Node):
    """Pairs of rows. `keys` are the equalities (left, right); `condition` is the rest of ON, or None.

    `semi` returns the left rows with a partner, `anti` the left rows without one.
    """

    left: Node
    right: Node
    kind: Literal["inner", "left", "semi", "anti"]
    keys: tuple[tuple[exp.Expr, exp.Expr], ...]
    condition: exp.Expr | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of both sides; those of the left side for a semi or an anti join."""
        return self.left.columns if self._keeps_left() else (*self.left.columns, *self.right.columns)

    def children(self) -> tuple[Node, ...]:
        """Return left and right."""
        return (self.left, self.right)

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same join over other sides."""
        left, right = inputs
        return replace(self, left=left, right=right)

    def _keeps_left(self) -> bool:
        """Return whether the result has only columns of the left side, each left row at most once."""
        return self.kind in ("semi", "anti")

    def rows(self, script: Script, row_set: str) -> str:
        """Return the pairs."""
        left, right = script.rows(self.left, row_set), script.rows(self.right, row_set)
        return f"select {script.names(self.columns)} from {self._paired(script, left, right)}"

    def changes(self, script: Script) -> list[str]:
        """Return the changes of each side joined to the rows of the other; a side without changes has no term."""
        left, right = script.changes(self.left), script.changes(self.right)
        if self.kind != "inner":
            return self._by_left(script, left, right)
        texts = []
        # dR S0: the changes of the left side against the pre-state of the right side.
        if left is not None:
            texts.append(self._signed(script, left, script.rows(self.right, "old"), f"l.{WEIGHT}"))
        # R1 dS: the post-state of the left side, so that pairs of two changed rows are counted here and only here.
        if right is not None:
            texts.append(self._signed(script, script.rows(self.left, "new"), right, f"r.{WEIGHT}"))
        return texts

    def _by_left(self, script: Script, left: str | None, right: str | None) -> list[str]:
        texts = []
        # dL join R1: linear in the left side while the right side is fixed at its post-state.
        if left is not None:
            texts.append(self._signed(script, left, script.rows(self.right, "new"), f"l.{WEIGHT}"))
        # L0 join R1 - L0 join R0, for affected left rows alone: all others cancel.
        if right is not None:
            matched = self._matched_left(script, right)
            texts.append(self._signed(script, matched, script.rows(self.right, "new"), "1"))
            texts.append(self._signed(script, matched, script.rows(self.right, "old"), "-1"))
        return texts

    def _matched_left(self, script: Script, right: str) -> str:
        """Return the name of a part: the left rows of the pre-state that match a changed right row."""
        old = script.rows(self.left, "old")
        word = writer.semi_join(script.dialect)
        columns = script.names(self.left.columns, "l")
        return script.part(f"select {columns} from {old} as l {word} {right} as r on {self._on(script)}", "met")

    def _signed(self, script: Script, left: str, right: str, weight: str) -> str:
        paired = self._paired(script, left, right)
        return f"select {script.names(self.columns)}, {weight} as {WEIGHT} from {paired}"

    def _paired(self, script: Script, left: str, right: str) -> str:
        words = {"inner": "join", "left": "left join"}
        words |= {"semi": writer.semi_join(script.dialect), "anti": writer.anti_join(script.dialect)}
        return f"{left} as l {words[self.kind]} {right} as r on {self._on(script)}"

    def _on(self, script: Script) -> str:
        # Column names of the two sides never clash, because `translate` renames them.
        conditions = self._equal(script)
        if self.condition is not None:
            conditions.append(f"({script.expr(self.condition)})")
        return " and ".join(conditions) or "true"

    def _equal(self, script: Script) -> list[str]:
        return [f"{script.expr(a)} = {script.expr(b)}" for a, b in self.keys]

    def types(self) -> dict[str, Type]:
        """Return the types of both sides; the right side of a left join is nullable."""
        if self._keeps_left():
            return self.left.types()
        right = self.right.types()
        if self.kind == "left":
            right = {name: Type(t.text, True) for name, t in right.items()}
        return self.left.types() | right

    def grain(self) -> tuple[str, ...] | None:
        """Return the left side's grain if each left row has at most one partner, else the grains of both sides.

        There is at most one partner if the keys determine the right side's grain, by comparisons whose implicit casts
        map no two values to one.
        """
        left, right = self.left.grain(), self.right.grain()
        if self._keeps_left():
            return left
        if left is None or right is None:
            return None
        mine, theirs = self.left.types(), self.right.types()
        joined = {
            b.name
            for a, b in self.keys
            if isinstance(b, exp.Column) and types.keeps_apart(theirs[b.name], types.of(a, mine))
        }
        return left if set(right) <= joined else (*left, *right)

    def has_copies(self) -> bool:
        """Return whether a side whose rows appear in the result has copies."""
        return self.left.has_copies() or (not self._keeps_left() and self.right.has_copies())

    def dependencies(self) -> list[Dependency]:
        """Return the dependencies of the sides, and the ones that the keys imply."""
        left = self.left.dependencies()
        if self._keeps_left():
            return left
        right = self.right.dependencies()
        known = {**self.left.types(), **self.right.types()}
        ties = [rule for a, b in self.keys for rule in functional_dependencies.equal(a, b, known)]
        if self.kind == "inner":
            return [*left, *right, *ties, *functional_dependencies.equalities(self.condition, known)]
        # If the keys of a left join determine the right row, the left side determines all columns. Other dependencies
        # of the right side need not hold between its rows and the padded NULLs.
        needed = frozenset(c for a, _ in self.keys for c in columns_in(a)) | (
            columns_in(self.condition) & set(self.left.columns) if self.condition is not None else frozenset()
        )
        if set(self.right.columns) <= functional_dependencies.closed(needed, [*ties, *right]):
            return [*left, *((needed, column) for column in self.right.columns)]
        return left

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: the other side's rows are read from its tables."""
        return False

    def keeps_rows(self) -> bool:
        """Return False: a new partner deletes the padded row of a left join and the row of an anti join.

        An inner join of append-only tables would be append-only, too. It is merged by its key all the same. Semi joins
        need that: an affected row is deleted and inserted in one tick.
        """
        return False

    def reads_clock(self) -> bool:
        """Return False: `translate` moves conditions over the clock above the join or into a side."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None: the keys find the rows of the other side."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows of both sides: partners may be of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict each side by the keys that it has, directly or through an equal column of the other side."""
        left = {c: k for c, k in keys.items() if c in self.left.columns}
        right = {c: k for c, k in keys.items() if c in self.columns and c in self.right.columns}
        equal_left: Keys = {}
        equal_right: Keys = {}
        for a, b in self.keys:
            if isinstance(a, exp.Column) and isinstance(b, exp.Column):
                if a.name in left:
                    equal_right.setdefault(b.name, left[a.name])
                if b.name in right and self.kind == "inner":
                    equal_left.setdefault(a.name, right[b.name])
        new_left = restrict(self.left, relation, left | equal_left) if left | equal_left else self.left
        # Except in an inner join, the right side is restricted by the left side's keys only: a left row that lost its
        # partner would change.
        on_right = right | equal_right if self.kind == "inner" else equal_right
        new_right = restrict(self.right, relation, on_right) if on_right else self.right
        whole = len(left) == len(keys) or (self.kind == "inner" and len(left | equal_left) == len(keys))
        return self.with_children((new_left, new_right)), whole

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return affected keys of the left side: from its own changes, and from the right's through equal columns."""
        if not set(keys) <= set(self.left.columns):
            return of_changes(self, keys, script)
        equal = {a.name: b.name for a, b in self.keys if isinstance(a, exp.Column) and isinstance(b, exp.Column)}
        texts = self.left.support(keys, script)
        if set(keys) <= set(equal):
            return [*texts, *self.right.support(tuple(equal[key] for key in keys), script)]
        met = script.changes(self.right)
        if met is None:
            return texts
        on = " and ".join(self._equal(script)) or "true"
        word = writer.semi_join(script.dialect)
        for row_set in ("old", "new"):
            left = script.rows(self.left, row_set)
            texts.append(f"select distinct {numbered(keys, script, 'l')} from {left} as l {word} {met} as r on {on}")
        return texts
