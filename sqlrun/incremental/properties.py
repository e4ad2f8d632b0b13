"""Properties of a whole tree of operators: linear, append-only, moving, and the tables it reads. Pure.

Each property is a question to every operator of the tree; none depends on the kind of an operator.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Node, walk
from sqlrun.incremental.file_ranges import Read
from sqlrun.transpile.refusals import Reason


def is_linear(node: Node) -> bool:
    """Return whether changes of the inputs map to changes of the result without state.

    The composition of linear maps is linear, so a tree is linear if each of its operators is.
    """
    return not any(one.needs_state() for one in walk(node))


def only_grows(node: Node) -> bool:
    """Return whether the result is append-only: no table loses rows, and no operator deletes one."""
    return all(one.keeps_rows() for one in walk(node))


def moves(node: Node) -> bool:
    """Return whether as_of alone changes the result."""
    return any(one.reads_clock() for one in walk(node))


def reads_everything(node: Node) -> Reason | None:
    """Return why a tick must read whole tables even for a small change; None if it needn't."""
    return next((reason for one in walk(node) if (reason := one.reads_everything()) is not None), None)


def tables(node: Node) -> tuple[str, ...]:
    """Return the tables that a tree reads, each once, in the order of first use."""
    return tuple(dict.fromkeys(table for one in walk(node) for table in one.tables()))


def all_rows(node: Node) -> list[Read]:
    """Return the reads of an operator that may read any row, before and after, of the tables below it."""
    return [Read(table, row_set, None) for table in tables(node) for row_set in ("old", "new")]
