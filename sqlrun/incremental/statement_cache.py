"""Cache of statements, written once for all ticks of the same kind. Pure.

A statement names the times of its tick by parameters (`transpile.parameters`), so its text is the same in every tick.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from sqlrun.engine_api import Dialect
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Prepared, Tick, prepare
from sqlrun.runtime.lru import Recent

T = TypeVar("T")
# Maximum number of cached statements; even a project of 1,000 models has few kinds of ticks.
MOST = 4096


def prepared(stage: Stage, tick: Tick, dialect: Dialect) -> Prepared | None:
    """Return `statements.prepare` from the cache, for any stage with a node."""
    kind = (tick.moment.clock, tick.changed, tick.fresh, tick.whole, tick.earlier, dialect)
    return cached(stage, kind, lambda: prepare(stage, tick, dialect, ""))


# The entry retains the stage, so that no other object gets its id.
_cached: Recent[tuple[int, Hashable], tuple[Stage, Any]] = Recent(MOST)


def cached(stage: Stage, kind: Hashable, make: Callable[[], T]) -> T:
    """Return the cached value of a stage and a kind, or make it. Stages are compared by identity.

    Comparing their content would take longer than making most values again.
    """
    return cast(T, _cached.get((id(stage), kind), lambda: (stage, make()))[1])
