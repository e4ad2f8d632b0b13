"""The boundaries between a build's steps, by name: which function is there, and what it is called with.

Nothing in the product knows of them: a process that is to die has the function replaced before it begins.
Where one step follows another with nothing written in between, `after` the one and `before` the other are one point.
"""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlrun.sources.stream_checkpoint import IDENTITY

ENGINE = "sqlrun.engines.duckdb.engine:DuckDBEngine"
SPARK = "sqlrun.engines.spark.engine:SparkEngine"
COMMIT, OWN_COMMIT = "sqlrun.engines.delta.commit:commit", "sqlrun.engines.delta.commit:was_committed"


@dataclass(frozen=True)
class Point:
    """`where` is module:attribute. `when` picks the calls that count, and `call` the one among them."""

    where: str
    after: bool = False
    when: Callable[..., bool] = lambda *_, **__: True
    call: int = 1


def _writes(kind: str) -> Callable[..., bool]:
    return lambda _, write: type(write.statement).__name__ == kind


def _commits(table: str) -> Callable[..., bool]:
    return lambda _, write, __: write.table.name == table


def _kind(wanted: str) -> Callable[..., bool]:
    return lambda _, values, *rest: values[1] == wanted


def _both(name: str, where: str, **options: Any) -> dict[str, Point]:
    return {f"before {name}": Point(where, **options), f"after {name}": Point(where, after=True, **options)}


CREATED = {"after a table is made": Point(f"{ENGINE}.create", after=True, call=4)}
RESTORED = {"after two tables are restored": Point(f"{ENGINE}.restore", after=True, call=2)}
# Between two writes of a tick that don't wait for each other there is no moment of its own: `after` one is enough.
TICK = (
    {
        "before the ledger is read": Point("sqlrun.publish.ledger:Ledger.read", call=2),
        "after a seed is loaded": Point(f"{ENGINE}.write", True, _writes("Load")),
        "in the plan of a batch": Point(
            "sqlrun.runtime.atomic_files:Path.hardlink_to", when=lambda file, _: file.parent.name == "batches"
        ),
        "before a batch is committed": Point(COMMIT, when=_commits("stg_lines")),
    }
    | _both("the pin", "sqlrun.publish.ledger:Ledger._append", when=_kind("pinned"))
    | {
        "before the pin's row is committed": Point(OWN_COMMIT, when=_commits("ledger")),
        "after an append": Point(f"{ENGINE}.write", True, _writes("Append")),
        "between two files of a merge": Point("sqlrun.engines.duckdb.merge:copied", call=2),
        "in a merge": Point("sqlrun.engines.delta.commit:commit"),
        "before a merge's commit has its name": Point(
            "sqlrun.runtime.atomic_files:Path.hardlink_to",
            when=lambda file, _: file.parent.name == "_delta_log" and "stg_sales" in file.parts,
        ),
        "after a merge": Point(f"{ENGINE}.write", True, _writes("Merge")),
        "after a replacement": Point(f"{ENGINE}.write", True, _writes("Replace")),
        "after partitions are written": Point(f"{ENGINE}.write", True, _writes("Overwrite")),
        "before a check": Point("sqlrun.run.scheduler:check"),
        "after the tables are synced": Point("sqlrun.storage.local:LocalStorage.sync", after=True),
        "before the published row is committed": Point(OWN_COMMIT, when=_commits("ledger"), call=2),
        "after the tick is published": Point("sqlrun.publish.ledger:Ledger._append", True, _kind("published")),
    }
    | _both("the receipts", "sqlrun.system_tables.receipts:write")
)
ROLLBACK = {
    "before the rollback's pin": Point("sqlrun.publish.ledger:Ledger.pin"),
    **_both("the rollback is published", "sqlrun.publish.ledger:Ledger.publish"),
}
VACUUM = (
    {
        # Each tick lands lines; `mart_best`, for example, stays the same in a third of them.
        "before files are put together": Point(
            "sqlrun.engines.delta.vacuum:compact", when=lambda path, *_: Path(path).parent.name == "stg_lines"
        ),
        "before files are deleted": Point("sqlrun.engines.delta.vacuum:vacuum", call=4),
    }
    | _both("change files are deleted", "sqlrun.engines.delta.vacuum:drop_change_files", call=2)
    | _both("a table is deleted", "sqlrun.operations.maintenance:drop_table")
    | _both("the vacuum is published", "sqlrun.publish.ledger:Ledger.publish")
)
KILLED = CREATED | RESTORED | TICK | ROLLBACK | VACUUM
# Nothing has been written yet; but who is stopped here and overtaken must not restore what the other one has written.
STOPPED = {"before a table is restored": Point(f"{ENGINE}.restore")}
ON_SPARK = {
    # Spark has committed the batch, and sqlrun has not yet noted whose it is.
    "after Spark's batch": Point(
        "sqlrun.storage.local:LocalStorage.put", when=lambda _, path, *__, **___: path.endswith(f"/{IDENTITY}")
    ),
    "after Spark's seed": Point(f"{SPARK}.write", True, _writes("Load")),
    "after Spark's merge": Point(f"{SPARK}.write", True, _writes("Merge")),
}

# The steps of a batch of messages.
ON_KAFKA = {
    "after messages are read": Point("sqlrun.engines.planned_landing:settled"),
    "after messages are committed": Point("sqlrun.sources.kafka:Kafka.commit"),
    "in the plan of a batch": TICK["in the plan of a batch"],
    "before a batch of messages is committed": Point(COMMIT, when=_commits("stg_lines")),
    "before the pin": TICK["before the pin"],
    "after the pin": TICK["after the pin"],
}


def strike(name: str, sent: str, group: bool = False) -> None:
    """Have this process send itself a signal when it gets to a point; `group`: its JVM too, which is in its group."""
    point = (KILLED | STOPPED | ON_SPARK | ON_KAFKA)[name]
    whom = 0 if group else os.getpid()
    module, _, path = point.where.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, attribute = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    real = getattr(owner, attribute)
    calls = 0

    def instead(*args: Any, **named: Any) -> Any:
        nonlocal calls
        counted = point.when(*args, **named)
        calls += counted
        here = counted and calls == point.call
        if here and not point.after:
            os.kill(whom, signal.Signals[sent])
        done = real(*args, **named)
        if here and point.after:
            os.kill(whom, signal.Signals[sent])
        return done

    setattr(owner, attribute, instead)
