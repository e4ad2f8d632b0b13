"""The registry of the algebra: every operator. Pure.

A new operator is a file here, a line below, a `.case` file of its name and a paragraph in docs/concepts/incremental.md.
An operator that doesn't answer a question is abstract, and mypy reports its line.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.operators.affected import Affected
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.explode import Explode
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.join import Join
from sqlrun.incremental.operators.latest import Latest
from sqlrun.incremental.operators.moving import Moving
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.operators.single import Single
from sqlrun.incremental.operators.temporal import Temporal
from sqlrun.incremental.operators.union_all import UnionAll
from sqlrun.incremental.operators.window import Window


def _concrete(*operators: type[Node]) -> tuple[type[Node], ...]:
    """Return the classes. mypy accepts no abstract class as an argument here."""
    return operators


OPERATORS = _concrete(
    Scan,
    Single,
    Filter,
    Project,
    Explode,
    UnionAll,
    Join,
    Aggregate,
    Window,
    Temporal,
    Moving,
    Latest,
    Affected,
)
