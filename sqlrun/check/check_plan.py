"""A model's checks as values: which expectations go to which evaluator, over which rows, on which terms. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from sqlrun.expectations.catalogue import CATALOGUE, VOLUME
from sqlrun.expectations.validate import scope
from sqlrun.expectations.values import columns_of, families, number
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.project import DEFAULTS, Expectation, Model

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlrun.engine_api import Dialect
    from sqlrun.events import CheckResult

Key = tuple[str, ...]
# How a change is looked at that can't be held in one piece. `parts`: part by part, the counts added up. `piece`: in one
# piece, of the needed columns alone. `schema`: names and types, on the first part. `keys`: by the engine, which counts
# rows that share a key. `whole`: on tables that are held, the rows that share a key or all.
Way = Literal["parts", "piece", "schema", "keys", "whole"]
# Expectations by their places among all of a model.
Placed = Mapping[int, Expectation]
# Types of which DuckDB's and Spark's GROUP BY find the same values equal as the checks do.
_COUNTABLE = ("integer", "decimal", "text", "boolean", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all checks of a run.

    `as_of` is the only clock. A check that takes longer than `check_timeout` seconds is an error. `evaluator`: `auto`
    leaves to Arrow what it counts as Great Expectations does; `great_expectations` asks about all checks.
    """

    as_of: datetime
    check_timeout: float = DEFAULTS.check_timeout
    evaluator: str = "auto"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are held.

    `changed` are as they are now. `keyed`: the table's rows that share a key with them (None: `changed` are enough).
    `whole` gives the whole table; it is called once at most, and only where a check needs it.
    """

    changed: pa.Table
    keyed: pa.Table | None = None
    whole: Callable[[], pa.Table] | None = None


@dataclass(frozen=True, slots=True)
class LargeRows:
    """Rows of a change that is too large to be held, `count` in all.

    `parts` gives them; `keyed` and `whole` give tables. `ask` answers a query over the table `keyed`: the rows that
    share the key with a changed one.
    """

    count: int
    parts: Callable[[], Iterator[pa.Table]]
    ask: Callable[[str], pa.Table]
    keyed: Callable[[], pa.Table]
    whole: Callable[[], pa.Table]
    dialect: Dialect = "duckdb"


@dataclass(frozen=True, slots=True)
class Lot:
    """Expectations for which the same rows are read. Rows that share `key` with a changed one may repeat it.

    `held` are evaluated on rows that are held; `ways` parts those of a change that is too large for that.
    """

    key: Key
    held: Placed
    ways: Mapping[Way, Placed]

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """List all of them."""
        return (*self.held.values(), *(one for placed in self.ways.values() for one in placed.values()))


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """All lots of a model's change; `count` is the number of expectations."""

    lots: tuple[Lot, ...]
    count: int

    def in_order(self, found: Mapping[int, CheckResult]) -> tuple[CheckResult, ...]:
        """List the results as the expectations are declared."""
        return tuple(found[place] for place in range(self.count))


def plan(model: Model, expectations: tuple[Expectation, ...], *, held: bool) -> CheckPlan:
    """Plan what of a change's rows is evaluated how; `held`: they can be held.

    Relationships also look at another table, and volume at the past: others evaluate these.
    """
    declared = tuple(one for one in expectations if one.type not in (RELATIONSHIPS, VOLUME))
    by_key: dict[Key, dict[int, Expectation]] = {}
    for place, expectation in enumerate(declared):
        by_key.setdefault(_key(expectation, model.grain), {})[place] = expectation
    lots = [Lot(key, lot, {}) if held else Lot(key, {}, ways(model, lot)) for key, lot in by_key.items()]
    return CheckPlan(tuple(lots), len(declared))


def _key(expectation: Expectation, grain: Key) -> Key:
    """Name the columns of a check of keys: who may repeat a changed row's key differs with them; else the grain."""
    if scope(expectation) != "key":
        return grain
    named = columns_of(expectation, CATALOGUE[expectation.type].columns)
    return grain if set(named) == set(grain) else named


def ways(model: Model, expectations: Placed) -> dict[Way, dict[int, Expectation]]:
    """Part expectations by how each is evaluated on a change that is too large to be held."""
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
            named = columns_of(expectation, CATALOGUE[expectation.type].columns)
            plain = not has_share and kwargs.get("row_condition") is None
            return "keys" if plain and all(types.get(name) in _COUNTABLE for name in named) else "whole"
        case "schema":
            return "schema"
        case "table" | "past":
            return "whole"
