"""What can be said of a whole tree of operators: linear, growing, moving, and what it reads. Pure.

Each is a question to every operator of the tree; none looks at what kind of operator it asks.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Node, walk
from sqlrun.incremental.file_ranges import Read
from sqlrun.transpile.refusals import Reason


def is_linear(node: Node) -> bool:
    """Return whether a change of the inputs maps to the change of the output without state.

    Linear maps compose, so a tree is linear where each of its operators is.
    """
    return not any(one.needs_state() for one in walk(node))


def only_grows(node: Node) -> bool:
    """Return whether rows, once in, never leave: no table loses rows, and no operator lets one go."""
    return all(one.keeps_rows() for one in walk(node))


def moves(node: Node) -> bool:
    """Return whether the answer changes with as_of alone."""
    return any(one.reads_clock() for one in walk(node))


def reads_everything(node: Node) -> Reason | None:
    """Return why a tick must look at whole tables, however little has changed; None where it need not."""
    return next((reason for one in walk(node) if (reason := one.reads_everything()) is not None), None)


def tables(node: Node) -> tuple[str, ...]:
    """Return the tables that a tree reads, each once, in the order of first use."""
    return tuple(dict.fromkeys(table for one in walk(node) for table in one.tables()))


def all_rows(node: Node) -> list[Read]:
    """Return the reads of an operator that may look at any old and any new row of the tables below it."""
    return [Read(table, row_set, None) for table in tables(node) for row_set in ("old", "new")]
