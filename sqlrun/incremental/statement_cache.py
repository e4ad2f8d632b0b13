"""Statements written once for all ticks of their kind. Pure.

A statement's text differs from that of the tick before by times alone. So it is written for two times that no tick has,
and a tick's own are put in their place. A query that names such a time itself is written anew for each tick.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any, TypeVar, cast

from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Prepared, Tick, prepare
from sqlrun.runtime.lru import Recent

T = TypeVar("T")
AS_OF = datetime(1111, 11, 12, 13, 14, 15, 161718, tzinfo=timezone.utc)
BEFORE = datetime(1212, 12, 13, 14, 15, 16, 171819, tzinfo=timezone.utc)
FULL, DAY = "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d"
# So many statements are kept: also a project of a thousand models has few kinds of ticks.
MOST = 4096


def prepared(stage: Stage, tick: Tick, dialect: Dialect, trees: Callable[[], Iterable[exp.Expr]]) -> Prepared | None:
    """Do what `statements.prepare` does, for any method but `full`.

    `trees` are the queries that the stage came from.
    """
    now, before = tick.moment.as_of, tick.moment.previous
    stand_in = Moment(AS_OF, None if before is None else AS_OF if before == now else BEFORE)
    of_kind = replace(tick, moment=stand_in)
    found, usable = kept(stage, (of_kind, dialect), lambda: _written(stage, of_kind, dialect, trees))
    if not usable:
        return prepare(stage, tick, dialect, "")
    return found and replace(found, statement=_filled(found.statement, tick.moment))


def _written(
    stage: Stage, tick: Tick, dialect: Dialect, trees: Callable[[], Iterable[exp.Expr]]
) -> tuple[Prepared | None, bool]:
    """Write a statement for the stand-ins, and tell whether it may be used: not where the query names one itself."""
    usable = not names_stand_ins(trees())
    return prepare(stage, tick, dialect, "") if usable else None, usable


# The stage is kept as well, so that no other gets its id.
_kept: Recent[tuple[int, Hashable], tuple[Stage, Any]] = Recent(MOST)


def kept(stage: Stage, kind: Hashable, make: Callable[[], T]) -> T:
    """Give what was made of a stage before, or make it; a stage is the same only as the same object.

    Comparing what it holds would take longer than making most things anew.
    """
    return cast(T, _kept.get((id(stage), kind), lambda: (stage, make()))[1])


def names_stand_ins(trees: Iterable[exp.Expr]) -> bool:
    """Tell whether a query has a text or a name in which a stand-in's day would be taken for the tick's."""
    days = [time.strftime(DAY) for time in (AS_OF, BEFORE)]
    return any(
        day in node.name for tree in trees for node in tree.find_all(exp.Literal, exp.Identifier) for day in days
    )


def _filled(value: Any, moment: Moment) -> Any:
    """Put a tick's times into all texts of a statement."""
    match value:
        case str():
            return at(value, moment)
        case tuple():
            return tuple(_filled(each, moment) for each in value)
        case bool():
            return value
        case _:
            changed = {field.name: _filled(getattr(value, field.name), moment) for field in fields(value)}
            return replace(value, **changed)


def at(text: str, moment: Moment) -> str:
    """Put a tick's times in the place of those that a text was written for."""
    pairs = [(AS_OF, moment.as_of), (BEFORE, moment.previous or moment.as_of)]
    for form in (FULL, DAY):
        for stand_in, time in pairs:
            text = text.replace(stand_in.strftime(form), time.astimezone(timezone.utc).strftime(form))
    return text
