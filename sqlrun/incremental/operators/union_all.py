"""Union all: the union of its inputs' changes. Pure.

Addition of bags with weights is linear: d(A + B) = dA + dB.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlrun.incremental import types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import restrict
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.operators.constants import constant
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class UnionAll(Node):
    """The rows of all inputs, columns by position, names from the first input."""

    parts: tuple[Node, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the first input."""
        return self.parts[0].columns

    def children(self) -> tuple[Node, ...]:
        """Return the inputs."""
        return self.parts

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the union of other inputs."""
        return replace(self, parts=inputs)

    def rows(self, script: Script, row_set: str) -> str:
        """Return the rows of all inputs, columns by position."""
        texts = [f"select {self._renamed(part, script)} from {script.rows(part, row_set)}" for part in self.parts]
        return "\nunion all\n".join(texts)

    def changes(self, script: Script) -> list[str]:
        """Return the changes of all inputs, columns by position."""
        texts = []
        for part in self.parts:
            child = script.changes(part)
            if child is not None:
                texts.append(f"select {self._renamed(part, script)}, {WEIGHT} from {child}")
        return texts

    def _renamed(self, part: Node, script: Script) -> str:
        pairs = zip(part.columns, self.columns, strict=True)
        return ", ".join(f"{script.name(own)} as {script.name(name)}" for own, name in pairs)

    def types(self) -> dict[str, Type]:
        """Return for each position the type that holds the values of all inputs."""
        known = [part.types() for part in self.parts]
        columns = list(zip(*(part.values() for part in known), strict=True))
        merged = [types.widest(list(column)) for column in columns]
        return dict(zip(known[0], merged, strict=True))

    def grain(self) -> tuple[str, ...] | None:
        """Return the grain that all inputs share, together with a constant that differs between inputs.

        Without such a constant, rows of two inputs may have the same key.
        """
        positions: set[tuple[int, ...]] = set()
        for part in self.parts:
            own = part.grain()
            if own is None:
                return None
            positions.add(tuple(part.columns.index(key) for key in own))
        if len(positions) != 1:
            return None
        keys = [self.columns[position] for position in positions.pop()]
        for index, name in enumerate(self.columns):
            constants = {constant(part, part.columns[index]) for part in self.parts}
            # A constant that differs between inputs keeps equal keys of two inputs apart.
            if None not in constants and len(constants) == len(self.parts):
                return tuple(dict.fromkeys([name, *keys]))
        return None

    def has_copies(self) -> bool:
        """Return whether any input has copies."""
        return any(part.has_copies() for part in self.parts)

    def dependencies(self) -> list[Dependency]:
        """Return []: dependencies within each input need not hold between rows of two inputs."""
        return []

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: the change of a sum is the sum of the changes."""
        return False

    def keeps_rows(self) -> bool:
        """Return True: no input deletes rows of another."""
        return True

    def reads_clock(self) -> bool:
        """Return False."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the inputs read."""
        return [read for part in self.parts for read in part.reads_beside_changes(moment)]

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict each input under its own column names."""
        parts = []
        for part in self.parts:
            names = dict(zip(self.columns, part.columns, strict=True))
            parts.append(restrict(part, relation, {names[c]: k for c, k in keys.items()}))
        return UnionAll(tuple(parts)), True

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes."""
        return of_changes(self, keys, script)
