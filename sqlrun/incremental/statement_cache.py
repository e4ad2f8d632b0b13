"""Statements written once for all ticks of their kind. Pure.

A statement names the times of its tick (`transpile.parameters`), so that its text is that of the tick before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from sqlrun.engine_api import Dialect
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Prepared, Tick, prepare
from sqlrun.runtime.lru import Recent

T = TypeVar("T")
# So many statements are kept: also a project of a thousand models has few kinds of ticks.
MOST = 4096


def prepared(stage: Stage, tick: Tick, dialect: Dialect) -> Prepared | None:
    """Do what `statements.prepare` does, for any method but `full`."""
    kind = (tick.moment.clock, tick.changed, tick.fresh, tick.whole, dialect)
    return cached(stage, kind, lambda: prepare(stage, tick, dialect, ""))


# The stage is kept as well, so that no other gets its id.
_cached: Recent[tuple[int, Hashable], tuple[Stage, Any]] = Recent(MOST)


def cached(stage: Stage, kind: Hashable, make: Callable[[], T]) -> T:
    """Return what was made of a stage before, or make it; a stage is the same only as the same object.

    Comparing what it holds would take longer than making most things anew.
    """
    return cast(T, _cached.get((id(stage), kind), lambda: (stage, make()))[1])
