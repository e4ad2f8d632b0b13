"""Which range of a table's rows a tick can need at all, so that files outside are not opened. Pure.

A window that moves from (L0, U0] to (L1, U1] reads the new rows of (U0, U1] and the old rows of (L0, L1] alone. The
bounds here are wide by nothing but their closed ends; the statement's own conditions stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlglot import exp

from sqlrun.incremental import clocks
from sqlrun.incremental.algebra import (
    Aggregate,
    Bound,
    Filter,
    Latest,
    Moving,
    Node,
    Project,
    Scan,
    Temporal,
    Window,
    children,
)
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage, collapse

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}


@dataclass(frozen=True, slots=True)
class Range:
    """The rows whose `column` lies in [low, high], times in UTC."""

    column: str
    low: datetime
    high: datetime


@dataclass(slots=True)
class _Found:
    """Ranges by (table, flavour); None as soon as one read of it has no range."""

    ranges: dict[tuple[str, str], list[Range] | None] = field(default_factory=dict)

    def add(self, table: str, flavour: str, one: Range | None) -> None:
        known = self.ranges.setdefault((table, flavour), [])
        if one is None or known is None:
            self.ranges[(table, flavour)] = None
        else:
            known.append(one)


def needed(stage: Stage, moment: Moment, *, fresh: bool) -> dict[tuple[str, str], tuple[Range, ...]]:
    """Tell for each (table, flavour) the ranges that a stage's statement can need; absent means: all of it."""
    if stage.node is None or moment.previous is None or fresh:
        return {}
    _, below = collapse(stage.node)
    found = _Found()
    if stage.method in ("additive", "newest") and isinstance(below, Aggregate | Latest):
        _changes(below.child, moment, found)
    elif stage.method in ("append", "rows"):
        _changes(stage.node, moment, found)
    else:
        return {}
    return {key: tuple(ranges) for key, ranges in found.ranges.items() if ranges}


def _changes(node: Node, moment: Moment, found: _Found) -> None:
    """Collect what the change of a node reads besides changes."""
    match node:
        case Scan():
            return
        case Temporal():
            _changes(node.child, moment, found)
            _pieces(node, moment, found)
        case Aggregate() | Window() | Latest() | Moving():
            _everything(node, found)
        case Project() if any(clocks.reads_clock(item) for _, item in node.items):
            _everything(node, found)
        case _ if len(children(node)) == 2 and not _is_union(node):
            _everything(node, found)
        case _:
            for child in children(node):
                _changes(child, moment, found)


def _is_union(node: Node) -> bool:
    return type(node).__name__ == "UnionAll"


def _everything(node: Node, found: _Found) -> None:
    if isinstance(node, Scan):
        found.add(node.table, "old", None)
        found.add(node.table, "new", None)
    for child in children(node):
        _everything(child, found)


def _pieces(node: Temporal, moment: Moment, found: _Found) -> None:
    assert moment.previous is not None
    scan, column = _source(node.child, node.time)
    if scan is None:
        _everything(node.child, found)
        return
    now, before = moment.as_of, moment.previous
    if node.upper is not None:
        low, high = _at(node.upper, before), _at(node.upper, now)
        found.add(scan.table, "new", Range(column, low, high) if low and high else None)
    if node.lower is not None:
        low, high = _at(node.lower, before), _at(node.lower, now)
        found.add(scan.table, "old", Range(column, low, high) if low and high else None)


def _source(node: Node, time: exp.Expr) -> tuple[Scan | None, str]:
    """Follow a time column down to the table that it comes from."""
    if not isinstance(time, exp.Column):
        return None, ""
    match node:
        case Scan():
            return node, time.name
        case Filter() | Temporal() | Moving():
            return _source(node.child, time)
        case Project():
            return _source(node.child, dict(node.items)[time.name])
        case _:
            return None, ""


def _at(bound: Bound, moment: datetime) -> datetime | None:
    """Work out where a bound lies at a moment; None for an interval of months or of a computed length."""
    if bound.shift is None:
        return moment
    unit = bound.shift.args.get("unit")
    amount = bound.shift.this
    name = unit.name.upper().rstrip("S") if unit is not None else ""
    if name not in SECONDS or not isinstance(amount, exp.Literal) or not amount.name.lstrip("-").isdigit():
        return None
    return moment + bound.sign * timedelta(seconds=SECONDS[name] * int(amount.name))
