"""Join: telescoping, dR with the other's old rows, then the new rows with dS. Pure.

An inner join is linear in each side, so R1 S1 - R0 S0 = (R1 - R0) S0 + R1 (S1 - S0) = dR S0 + R1 dS. The middle term
R1 S0 is added and taken away again, and each pair of changes is counted once: in R1 dS, as R1 = R0 + dR.

Left, semi and anti joins are linear in their left side while the right side stands still:
d(L left join R) = dL left join R.new + (L.old left join R.new - L.old left join R.old), and the second part
needs only the old left rows that meet a changed row of R. Any other left row has the same partners before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from sqlrun.incremental import functional_dependencies, properties, types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type
from sqlrun.incremental.expressions import columns_in
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.touched import restrict
from sqlrun.incremental.operators.touched_keys import numbered, of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile import writer
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Join(Node):
    """Pairs of rows; `keys` are the equalities (left, right), `condition` is what else must hold, or None.

    `semi` keeps the left rows that have a partner, `anti` those that have none.
    """

    left: Node
    right: Node
    kind: Literal["inner", "left", "semi", "anti"]
    keys: tuple[tuple[exp.Expr, exp.Expr], ...]
    condition: exp.Expr | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of both sides, of a semi or an anti join those of the left."""
        return self.left.columns if self._keeps_left() else (*self.left.columns, *self.right.columns)

    def children(self) -> tuple[Node, ...]:
        """Return left and right."""
        return (self.left, self.right)

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same join of other sides."""
        left, right = inputs
        return replace(self, left=left, right=right)

    def _keeps_left(self) -> bool:
        """Return whether the rows are rows of the left side, each once however many partners it has."""
        return self.kind in ("semi", "anti")

    def rows(self, script: Script, row_set: str) -> str:
        """Pair the rows."""
        left, right = script.rows(self.left, row_set), script.rows(self.right, row_set)
        return f"select {script.names(self.columns)} from {self._paired(script, left, right)}"

    def changes(self, script: Script) -> list[str]:
        """Pair the changes of each side with the rows of the other; a side without changes has no term."""
        left, right = script.changes(self.left), script.changes(self.right)
        if self.kind != "inner":
            return self._by_left(script, left, right)
        texts = []
        if left is not None:
            texts.append(self._signed(script, left, script.rows(self.right, "old"), f"l.{WEIGHT}"))
        if right is not None:
            texts.append(self._signed(script, script.rows(self.left, "new"), right, f"r.{WEIGHT}"))
        return texts

    def _by_left(self, script: Script, left: str | None, right: str | None) -> list[str]:
        texts = []
        if left is not None:
            texts.append(self._signed(script, left, script.rows(self.right, "new"), f"l.{WEIGHT}"))
        if right is not None:
            touched = self._touched(script, right)
            texts.append(self._signed(script, touched, script.rows(self.right, "new"), "1"))
            texts.append(self._signed(script, touched, script.rows(self.right, "old"), "-1"))
        return texts

    def _touched(self, script: Script, right: str) -> str:
        """Keep the old left rows that may meet a changed right row."""
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
        # Column names of the two sides never clash: translate renames them.
        conditions = self._equal(script)
        if self.condition is not None:
            conditions.append(f"({script.expr(self.condition)})")
        return " and ".join(conditions) or "true"

    def _equal(self, script: Script) -> list[str]:
        return [f"{script.expr(a)} = {script.expr(b)}" for a, b in self.keys]

    def types(self) -> dict[str, Type]:
        """Return the types of both sides; the right side of a left join may be NULL."""
        if self._keeps_left():
            return self.left.types()
        right = self.right.types()
        if self.kind == "left":
            right = {name: Type(t.text, True) for name, t in right.items()}
        return self.left.types() | right

    def grain(self) -> tuple[str, ...] | None:
        """Return the left side's grain where each left row has one partner at most, else the grains of both.

        It has one where the keys fix the right side's grain, by comparisons that no cast makes true for two values.
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
        """Return whether a side has whose rows come out."""
        return self.left.has_copies() or (not self._keeps_left() and self.right.has_copies())

    def dependencies(self) -> list[Dependency]:
        """Return what the sides say of their rows, and what the keys say of both."""
        left = self.left.dependencies()
        if self._keeps_left():
            return left
        right = self.right.dependencies()
        known = {**self.left.types(), **self.right.types()}
        ties = [rule for a, b in self.keys for rule in functional_dependencies.equal(a, b, known)]
        if self.kind == "inner":
            return [*left, *right, *ties, *functional_dependencies.equalities(self.condition, known)]
        # Where the keys of a left join fix the right row, so that a left row meets one or none, the left side fixes
        # all. What else the right rows say of each other need not hold for the NULLs beside them.
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
        """Return False: the other side's rows are read from its table, none are kept."""
        return False

    def keeps_rows(self) -> bool:
        """Return False: a partner that comes takes back the NULLs of a left join and the row of an anti join.

        An inner join of tables that grow would only grow as well. It is merged by its key all the same, and semi joins
        need that, since they judge a touched row again: it leaves and comes in one tick.
        """
        return False

    def reads_clock(self) -> bool:
        """Return False: translate puts conditions with a clock above the join or into a side."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None: the rows of the other side are found by the keys."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows of both sides: partners may be of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict both sides by the keys that they have, equal columns of the other side included."""
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
        # The right side, but of an inner join: restricted by the left's keys only, or rows would lose their partners.
        on_right = right | equal_right if self.kind == "inner" else equal_right
        new_right = restrict(self.right, relation, on_right) if on_right else self.right
        whole = len(left) == len(keys) or (self.kind == "inner" and len(left | equal_left) == len(keys))
        return self.with_children((new_left, new_right)), whole

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take keys of the left side that are touched on the left, or on the right through equal columns."""
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
