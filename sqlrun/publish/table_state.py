"""The state of each table in a published tick: version, inputs and time; its JSON form in the ledger. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlrun.project import is_state_table
from sqlrun.runtime.clock import parse_time
from sqlrun.source_api import CompleteTo

# Begins the path of a table that others write, among a table's inputs. No folder of a warehouse begins so.
SOURCE = "source:"


def source_path(label: str, table_id: str, commit: str) -> str:
    """Return the path of a source's table in the ledger: its name, the table's own id, and the hash of a commit.

    >>> source_path("lake.orders", "6a78b24a", "0a1b2c")
    'source:lake.orders/6a78b24a@0a1b2c'
    """
    return f"{SOURCE}{label}/{table_id}@{commit}"


def is_source(path: str) -> bool:
    """Return whether a path in the ledger is that of a table that others write."""
    return path.startswith(SOURCE)


def table_of(path: str) -> str:
    """Return the part of a path that is the same for all versions of a table.

    >>> table_of("source:lake.orders/6a78b24a@0a1b2c"), table_of("orders/0a1b2c3d4e5f")
    ('source:lake.orders/6a78b24a', 'orders/0a1b2c3d4e5f')
    """
    return path.partition("@")[0] if is_source(path) else path


@dataclass(frozen=True, slots=True)
class TableSample:
    """A sample of the events that sources have: those after `since`, at first the last `minutes` before a tick.

    >>> from datetime import timezone
    >>> str(TableSample(180, datetime(2026, 1, 31, 9, 5, tzinfo=timezone.utc)))
    'events after 2026-01-31 09:05 UTC (--sample 3h)'
    """

    minutes: int
    since: datetime

    @property
    def length(self) -> str:
        """Return the length as `--sample` takes it."""
        units = ((1440, "d"), (60, "h"), (1, "m"))
        return next(f"{self.minutes // n}{unit}" for n, unit in units if self.minutes % n == 0)

    def __str__(self) -> str:
        return f"events after {self.since:%Y-%m-%d %H:%M} UTC (--sample {self.length})"


@dataclass(frozen=True, slots=True)
class TableState:
    """One table at one tick. `path` is relative to the warehouse; `inputs` maps names to (path, version).

    The path of an input that others write is a `source_path` with the commit of the version.

    `as_of` is the time of the tick that last maintained the table; `content` the hash of a seed's rows, or
    of the rules that validated a landing table's lines, or a history's setting `hard_deletes`;
    `checksum` the sum of hashes of its rows (`checksums.py`), "" if unknown;
    `complete` until where a landing table has whole transactions, None if it doesn't take them;
    `sample` the sample that it was computed from, None for all rows.
    """

    path: str
    version: int
    as_of: datetime
    inputs: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    content: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    where: str = ""
    checksum: str = ""
    complete: CompleteTo | None = None
    sample: TableSample | None = None

    def with_checksum(self, text: str) -> TableState:
        """Return this state with a checksum."""
        return replace(self, checksum=text)


@dataclass(frozen=True, slots=True)
class Published:
    """A published tick, with the states of its tables.

    >>> from datetime import timezone
    >>> str(Published(3, datetime(2026, 1, 31, 12, 5, tzinfo=timezone.utc), {}))
    'tick 3, as_of 2026-01-31 12:05 UTC'
    """

    tick: int
    as_of: datetime
    tables: Mapping[str, TableState]

    def __str__(self) -> str:
        return f"tick {self.tick}, as_of {self.as_of:%Y-%m-%d %H:%M} UTC"


def to_json(tables: Mapping[str, TableState]) -> str:
    """Return table states as one line of JSON."""
    return json.dumps(
        {
            name: {
                "path": t.path,
                "version": t.version,
                "as_of": t.as_of.isoformat(),
                "inputs": {k: list(v) for k, v in t.inputs.items()},
                "content": t.content,
                "columns": [list(c) for c in t.columns],
                "where": t.where,
                "checksum": t.checksum,
                **({} if t.complete is None else {"complete": _complete_json(t.complete)}),
                **({} if t.sample is None else {"sample": [t.sample.minutes, t.sample.since.isoformat()]}),
            }
            for name, t in tables.items()
        },
        sort_keys=True,
    )


def from_json(text: str) -> dict[str, TableState]:
    """Return the table states that `to_json` wrote.

    >>> from datetime import timezone
    >>> noon = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    >>> from_json(to_json({"a": TableState("a/1", 3, noon)}))["a"].as_of == noon
    True
    """
    return {
        name: TableState(
            path=t["path"],
            version=t["version"],
            as_of=parse_time(t["as_of"]),
            inputs={k: (v[0], v[1]) for k, v in t["inputs"].items()},
            content=t["content"],
            columns=tuple((c[0], c[1]) for c in t.get("columns", ())),
            where=t.get("where", ""),
            checksum=t.get("checksum", ""),
            complete=_complete_of(t.get("complete")),
            sample=TableSample(t["sample"][0], parse_time(t["sample"][1])) if "sample" in t else None,
        )
        for name, t in json.loads(text).items()
    }


def _complete_json(complete: CompleteTo) -> dict[str, Any]:
    at = complete.committed_at
    return {**asdict(complete), "committed_at": None if at is None else at.isoformat()}


def _complete_of(found: Mapping[str, Any] | None) -> CompleteTo | None:
    """Return the fact that `_complete_json` wrote; None for a table that has none."""
    if found is None:
        return None
    at = found["committed_at"]
    return CompleteTo(**{**found, "committed_at": None if at is None else parse_time(at)})


def complete_to(tables: Mapping[str, TableState], name: str) -> tuple[CompleteTo, ...]:
    """Return until where a table has whole transactions: a fact for each database below it.

    Leave out a database if the table hasn't read the newest rows of its landing tables.
    """
    return tuple(fact for fact in _facts(tables, name) if fact is not None)


def _facts(tables: Mapping[str, TableState], name: str) -> Iterator[CompleteTo | None]:
    """Yield the fact of each database below a table; None if it hasn't read the newest rows of its landing tables."""
    found: dict[tuple[str, str], set[CompleteTo | None]] = {}
    seen, pending = set[tuple[str, bool]](), [(name, True)]
    while pending:
        one = pending.pop()
        if one in seen or one[0] not in tables:
            continue
        seen.add(one)
        state, is_newest = tables[one[0]], one[1]
        if state.complete is not None:
            key = state.complete.connection, state.complete.topic
            found.setdefault(key, set()).add(state.complete if is_newest else None)
        for each, read in state.inputs.items():
            now = tables.get(each)
            pending.append((each, is_newest and now is not None and (now.path, now.version) == read))
    yield from (facts.pop() if len(facts) == 1 else None for _, facts in sorted(found.items()))


def committed_until(tables: Mapping[str, TableState], names: Iterable[str]) -> datetime | None:
    """Return when the last transaction was committed that some tables are complete to, the earliest of all databases.

    None if no table reads a database by whole transactions, or if it isn't known of one of them.
    """
    times = [None if fact is None else fact.committed_at for name in names for fact in _facts(tables, name)]
    known = [at for at in times if at is not None]
    return min(known) if known and len(known) == len(times) else None


def all_complete_to(tables: Mapping[str, TableState]) -> tuple[CompleteTo, ...]:
    """Return until where a tick has whole transactions: a fact for each database that its sources land."""
    facts = {state.complete for state in tables.values() if state.complete is not None}
    return tuple(sorted(facts, key=lambda fact: (fact.connection, fact.topic, fact.next_offset)))


def own_tables(tables: Mapping[str, TableState]) -> dict[str, TableState]:
    """Return the tables without hidden ones, which hold models' intermediate results."""
    return {name: state for name, state in tables.items() if not is_state_table(name)}
