"""Events that a build emits while it runs, and its result. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from sqlrun.engine_api import UNKNOWN_LINES, LineCounts, Receipt
from sqlrun.errors import Place
from sqlrun.outcome import Outcome
from sqlrun.source_api import NO_SUMS, CompleteTo, LineSums

# Status of a step: a model, a seed or a landing.
Status = Literal["success", "error", "skipped", "no-op"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. `unexpected` counts rows (0 if a statistic failed); samples are rows as text.

    `seconds` is the check's share of the run that it was part of. `check_id` stays the same as long as the model, the
    type and the arguments do. `raw` is the full result of Great Expectations as JSON values, with values tagged pii
    hidden; None if sqlrun evaluated the check itself. `evaluator`: arrow, duckdb or great_expectations; "" if no rows
    were read.
    """

    model: str
    type: str
    columns: tuple[str, ...]
    severity: str
    status: Outcome
    evaluated: int
    unexpected: int
    samples: tuple[str, ...]
    seconds: float
    message: str
    description: str
    place: Place
    check_id: str = ""
    raw: Mapping[str, object] | None = None
    evaluator: str = ""


def blocks(checks: Iterable[CheckResult]) -> bool:
    """Return whether a check blocks publishing the tick."""
    return any(check.status.blocks for check in checks)


@dataclass(frozen=True, slots=True)
class Started:
    """A step began: `index` of `total`."""

    index: int
    total: int
    what: str


@dataclass(frozen=True, slots=True)
class Note:
    """A note about the tick as a whole, before its first step. `is_news`: the tick changes a table by it."""

    text: str
    is_news: bool = False


@dataclass(frozen=True, slots=True)
class StageReceipt:
    """The run stats of one table in one tick.

    `rows_in` are the changed rows of its inputs, `rows_changed` its own; `note` explains a choice made for this tick.
    `path` is the table's, relative to the warehouse; `engine` the one that wrote it, if there was a choice. `counts`:
    of a landing, without the texts of lines that have a column tagged pii. `lines`: the sums of all lines that landed
    since the published tick. `complete`: of a landing that takes whole transactions, until where. `check_seconds`: of a
    model's own table, the time of its checks, measures and checksums; None of others.
    """

    table: str
    strategy: str
    reason: str
    rows_changed: int
    version: int
    receipt: Receipt
    rows_in: int = 0
    note: str = ""
    path: str = ""
    engine: str = ""
    counts: LineCounts = UNKNOWN_LINES
    lines: LineSums = NO_SUMS
    complete: CompleteTo | None = None
    check_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The result of one model, seed or landing of a tick. `kind`: seed, landing, or the strategy.

    `reasons` count quarantined lines, `dropped` the lines that a landing left out. `follow` is the number of check
    results that are reported with it.
    """

    index: int
    total: int
    name: str
    kind: str
    status: Status
    seconds: float
    rows: int = 0
    quarantined: int = 0
    message: str = ""
    stages: tuple[StageReceipt, ...] = ()
    reasons: tuple[tuple[str, int], ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    follow: int = 0

    @property
    def lines(self) -> LineSums:
        """Return the sums of the lines of a landing; of another step, nothing."""
        return self.stages[-1].lines if self.stages else NO_SUMS


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a tick: `measure` of a model, such as `rows`. `source`: of a landing model, `group.name`.

    `low` and `high` bound the expected range, from the history; None if that is too short, and then nothing is unusual.
    `interval_seconds` is the time that the tick covers for the model; None in its first one.
    """

    subject: str
    measure: str
    value: float | None
    source: str | None = None
    interval_seconds: float | None = None
    low: float | None = None
    high: float | None = None
    unusual: bool = False
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class TickResult:
    """The result of a tick. `published` is False if readers still see the previous tick.

    `requests` is the number of sqlrun's own requests to the warehouse's object store; None on a disk.
    """

    tick: int
    as_of: datetime
    published: bool
    seconds: float
    nodes: tuple[NodeResult, ...]
    checks: tuple[CheckResult, ...] = field(default=())
    measures: tuple[Measure, ...] = ()
    requests: int | None = None

    @property
    def ok(self) -> bool:
        """Return whether nothing failed."""
        return self.published


Event = Started | Note | NodeResult | CheckResult
Listener = Callable[[Event], None]
