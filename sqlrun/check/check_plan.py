"""Plan of a model's checks: the evaluator and the rows for each expectation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from sqlrun.expectations.catalogue import VOLUME
from sqlrun.expectations.validate import scope
from sqlrun.expectations.values import columns_of, families, number
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.project import DEFAULTS, Expectation, Model

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlrun.engine_api import Dialect
    from sqlrun.events import CheckResult

Key = tuple[str, ...]
# How a change that is too large for memory is evaluated. `parts`: part by part, with the counts added up. `piece`: in
# one piece, with the needed columns only. `schema`: names and types, on the first part. `keys`: by the engine, which
# counts rows that share a key. `whole`: on tables in memory, with the rows that share a key or with all rows.
Way = Literal["parts", "piece", "schema", "keys", "whole"]
# Expectations by their index among all expectations of a model.
Placed = Mapping[int, Expectation]
# Types for which GROUP BY of DuckDB and Spark has the same equality as the checks.
_COUNTABLE = ("integer", "decimal", "text", "boolean", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Terms:
    """Settings for all checks of a run.

    `as_of` is the only clock. A check that takes longer than `check_timeout` seconds is an error. `evaluator`: `auto`
    uses Arrow where it returns the same as Great Expectations; `great_expectations` evaluates all checks by it.
    """

    as_of: datetime
    check_timeout: float = DEFAULTS.check_timeout
    evaluator: str = "auto"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in memory.

    `changed`: their post-state. `keyed`: the table's rows that share a key with them (None: `changed` suffice).
    `whole` returns the whole table; it is called at most once, and only if a check needs it.
    """

    changed: pa.Table
    keyed: pa.Table | None = None
    whole: Callable[[], pa.Table] | None = None


@dataclass(frozen=True, slots=True)
class LargeRows:
    """Rows of a change that is too large for memory, `count` in all.

    `parts` returns them in parts; `keyed` and `whole` return tables. `ask` runs a query over the table `keyed`: the
    rows that share the key with a changed one.
    """

    count: int
    parts: Callable[[], Iterator[pa.Table]]
    ask: Callable[[str], pa.Table]
    keyed: Callable[[], pa.Table]
    whole: Callable[[], pa.Table]
    dialect: Dialect = "duckdb"


@dataclass(frozen=True, slots=True)
class Lot:
    """Expectations that read the same rows. Rows that share `key` with a changed row may repeat it.

    `held`: evaluated on rows in memory; `ways`: the same expectations for a change that is too large for memory.
    """

    key: Key
    held: Placed
    ways: Mapping[Way, Placed]

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Return all expectations of the lot."""
        return (*self.held.values(), *(one for placed in self.ways.values() for one in placed.values()))


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """All lots of a model's change; `count` is the number of expectations."""

    lots: tuple[Lot, ...]
    count: int

    def in_order(self, found: Mapping[int, CheckResult]) -> tuple[CheckResult, ...]:
        """Return the results in the order of the declared expectations."""
        return tuple(found[place] for place in range(self.count))


def plan(model: Model, expectations: tuple[Expectation, ...], *, held: bool) -> CheckPlan:
    """Plan the evaluation of a change; `held`: its rows fit into memory.

    Relationships, which need another table, and volume, which needs the history, are evaluated elsewhere.
    """
    declared = tuple(one for one in expectations if one.type not in (RELATIONSHIPS, VOLUME))
    by_key: dict[Key, dict[int, Expectation]] = {}
    for place, expectation in enumerate(declared):
        by_key.setdefault(_key(expectation, model.grain), {})[place] = expectation
    lots = [Lot(key, lot, {}) if held else Lot(key, {}, ways(model, lot)) for key, lot in by_key.items()]
    return CheckPlan(tuple(lots), len(declared))


def _key(expectation: Expectation, grain: Key) -> Key:
    """Return the key that decides which rows a check compares: the columns of a check of keys; else the grain."""
    if scope(expectation) != "key":
        return grain
    named = columns_of(expectation)
    return grain if set(named) == set(grain) else named


def ways(model: Model, expectations: Placed) -> dict[Way, dict[int, Expectation]]:
    """Split expectations by how each is evaluated on a change that is too large for memory."""
    found: dict[Way, dict[int, Expectation]] = {}
    for place, expectation in expectations.items():
        found.setdefault(_way(model, expectation), {})[place] = expectation
    return found


def _way(model: Model, expectation: Expectation) -> Way:
    kwargs = expectation.kwargs
    has_share = number(kwargs.get("mostly"), 1.0) < 1.0
    match scope(expectation):
        case "row":
            return "piece" if has_share and "column" not in kwargs else "parts"
        case "key":
            types = families(model.columns)
            named = columns_of(expectation)
            plain = not has_share and kwargs.get("row_condition") is None
            return "keys" if plain and all(types.get(name) in _COUNTABLE for name in named) else "whole"
        case "schema":
            return "schema"
        case "table" | "past":
            return "whole"
