"""Random sequences of lines, builds, crashes, edits, rollbacks and maintenance: readers always see the truth.

Edits are tried in an environment or deployed to production directly, which takes over tried tables.

Hypothesis draws the sequence and prints one that fails. A crash is an exception within a step here;
`test_kill.py` kills processes.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sqlrun.commands import environments as environment_commands
from sqlrun.engines.delta import own_append
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import landing as duckdb_landing
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.operations import maintenance, rollback
from sqlrun.operations.verify import verify
from sqlrun.publish import environments
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from sqlrun.report.console import Console
from tests.support import broken
from tests.support.projects import Site, prepared
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.long]

SOURCES = """\
sources:
  - name: shops
    description: What shops say.
    tables:
      - name: lines
        description: Sales, corrected at times.
        format: json
        path: data/orders
        columns:
          - {name: id, data_type: string, description: The sale., nulls: false}
          - {name: version, data_type: int, description: Which state of it., unit: ordinal, nulls: false}
          - {name: shop, data_type: string, description: The shop., nulls: false}
          - {name: amount, data_type: "decimal(9,2)", description: What was paid., unit: EUR}
          - {name: sold_at, data_type: timestamp, description: When., unit: UTC, nulls: false}
"""
SALE = ("id string", "version int", "shop string", "amount decimal(9,2)", "sold_at timestamp")
QUERIES = {
    "stg_lines": ("select id, version, shop, amount, sold_at from {{ source('shops', 'lines') }}", SALE),
    "stg_sales": (
        "select id, version, shop, amount, sold_at from {{ ref('stg_lines') }}\n"
        "qualify row_number() over (partition by id order by version desc, amount desc, shop desc, sold_at desc) = 1",
        SALE,
    ),
    "fct_slots": (
        "select shop, date_trunc('minute', sold_at) as slot_at, count(*) as sales, sum(amount) as total\n"
        "from {{ ref('stg_sales') }} group by shop, date_trunc('minute', sold_at)",
        ("shop string", "slot_at timestamp", "sales bigint", "total decimal(19,2)"),
    ),
    "mart_hour": (
        "select shop, cast(sum(sales) as bigint) as sales, sum(total) as total from {{ ref('fct_slots') }}\n"
        "where slot_at > current_timestamp() - interval 1 hour and slot_at <= current_timestamp() group by shop",
        ("shop string", "sales bigint", "total decimal(29,2)"),
    ),
    "mart_best": (
        "select shop, id, amount from {{ ref('stg_sales') }}\n"
        "qualify row_number() over (partition by shop order by amount desc, id) <= 2",
        ("shop string", "id string", "amount decimal(9,2)"),
    ),
}
GRAIN = {"stg_lines": "    repeats: true", "stg_sales": "    grain: [id]"}
# An analyst's edits, in both directions: a model's text, and another text with another meaning.
EDITS = {
    "stg_lines": ("version, shop,", "version, upper(shop) as shop,"),
    "stg_sales": ("amount desc, shop", "amount, shop"),
    "fct_slots": ("count(*) as sales", "count(amount) as sales"),
    "mart_hour": ("interval 1 hour and", "interval 2 hours and"),
    "mart_best": ("<= 2", "<= 3"),
}
Line = tuple[str, int, str, int | None, int]
lines = st.tuples(
    st.sampled_from("abcdefgh"),
    st.integers(1, 3),
    st.sampled_from(["x", "y", "z"]),
    st.none() | st.integers(-3, 9),
    st.integers(-90, 20),
)


class Stop(BaseException):
    """A crash: sqlrun never catches it."""


def project(folder: Path) -> Path:
    files = {"models/_sources.yml": SOURCES}
    for name, (sql, columns) in QUERIES.items():
        files |= {
            f"models/{name}.sql": sql + "\n",
            f"models/{name}.yml": broken.contract(name, *columns, extra=GRAIN.get(name, "")),
        }
    (folder / "data" / "orders").mkdir(parents=True)
    return broken.write(folder, files)


def stopping(owner: Any, name: str, nth: int, *, after: bool) -> AbstractContextManager[Any]:
    """Replace a function by one that crashes at its nth call, before or after its work."""
    real: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def instead(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        mine = calls  # another thread may call it meanwhile
        if mine == nth and not after:
            raise Stop
        done = real(*args, **named)
        if mine == nth:
            raise Stop
        return done

    return mock.patch.object(owner, name, instead)


def untrue(site: Site) -> list[str]:
    """Return the differences that `sqlrun verify` finds in the latest tick, with each table at its own time."""
    names = tuple(model.name for model in site.prepared.workspace.tables)
    found = verify(site.prepared.workspace, site.warehouse, tick_of(site.ledger), names, 1)
    return [verdict.model for verdict in found if not verdict.ok]


class Life(RuleBasedStateMachine):
    """A warehouse and all that may happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.site = Site(project(self.folder / "shops"), DuckDBEngine())
        self.now, self.files, self.last = START, 0, 0
        self.lines: list[Line] = []
        self.seen: dict[int, dict[str, Counter[str]]] = {}
        self.edited: set[str] = set()
        self.dev = Site(self.site.root, self.site.engine, "dev")
        self.tried: dict[int, dict[str, Counter[str]]] = {}

    def teardown(self) -> None:
        self.site.engine.close()
        shutil.rmtree(self.folder)

    @initialize(first=st.lists(lines, min_size=1, max_size=4))
    def begin(self, first: list[Line]) -> None:
        self.arrive(first)
        self.build(0)

    @rule(fresh=st.lists(lines, min_size=1, max_size=4))
    def arrive(self, fresh: list[Line]) -> None:
        """Add sales, some of them late, repeated, corrected or dated ahead."""
        texts = [
            json.dumps(
                {
                    "id": number,
                    "version": version,
                    "shop": shop,
                    "amount": None if amount is None else f"{amount}.00",
                    "sold_at": (self.now + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
            for number, version, shop, amount, minutes in fresh
        ]
        self.site.write(f"{self.files:04}.jsonl", texts)
        self.files += 1
        self.lines += fresh

    @rule(steps=st.integers(0, 4), refresh=st.sampled_from([False, False, False, True]))
    def build(self, steps: int, refresh: bool = False) -> None:
        """Run a tick, some steps of five minutes later: its tables equal the whole queries over every line."""
        self.now += steps * FIVE
        result = self.site.tick(self.now, refresh=refresh)
        assert result.published
        assert result.tick > self.last
        self.last = result.tick
        assert len(self.site.rows("stg_lines")) == len(self.lines)
        assert differences(self.site, self.now) == {}
        self.seen[result.tick] = self.site.everything(result.tick)

    @rule(steps=st.integers(0, 2))
    def try_out(self, steps: int) -> None:
        """Run a tick of an environment, with edits that production lacks: it is right and isolated."""
        before, self.now = self.site.ledger.read().published, self.now + steps * FIVE
        self.dev.prepared = prepared(self.site.root)
        result = self.dev.tick(self.now)
        assert result.published
        assert untrue(self.dev) == []
        assert self.site.ledger.read().published == before
        self.tried[result.tick] = self.dev.everything(result.tick)

    @rule()
    def promote(self) -> None:
        """Build production with every edit, continuing from the tables tried in the environment."""
        self.site.prepared = prepared(self.site.root)
        self.build(0)

    @precondition(lambda self: self.tried)
    @rule()
    def drop(self) -> None:
        """Drop the environment; its tick numbers are not used again."""
        environment_commands.drop(self.dev.ledger, datetime.now(timezone.utc))
        assert environments.names(self.site.warehouse) == []
        self.tried = {}

    @rule(
        steps=st.integers(0, 2),
        nth=st.integers(1, 6),
        after=st.booleans(),
        tried=st.booleans(),
        where=st.sampled_from(["write", "pin", "publish", "land", "create", "restore", "append", "own append"]),
    )
    def crash(self, steps: int, nth: int, after: bool, tried: bool, where: str) -> None:
        """Cut a tick short somewhere; whether it is published depends on the place."""
        owner: Any = {
            "write": (self.site.engine, "write"),
            "create": (self.site.engine, "create"),
            "restore": (self.site.engine, "restore"),
            "land": (duckdb_landing, "commit"),
            "append": (delta_table, "append_rows"),
            "own append": (own_append, "append"),
            "pin": (Ledger, "pin"),
            "publish": (Ledger, "publish"),
        }[where]
        nth = 1 if where in ("pin", "publish", "land") else nth
        try:
            with stopping(*owner, nth, after=after):
                (self.dev if tried else self.site).tick(self.now + steps * FIVE)
        except Stop:
            pass
        newest = self.dev.ledger.read().published
        if newest is not None and newest.tick not in self.tried:
            self.now = newest.as_of
            assert untrue(self.dev) == []
            self.tried[newest.tick] = self.dev.everything(newest.tick)
        found = self.site.ledger.read()
        assert found.last_tick >= self.last
        self.last = found.last_tick
        newest = found.published
        if newest is not None and newest.tick not in self.seen:
            self.now = newest.as_of
            assert differences(self.site, self.now) == {}
            self.seen[newest.tick] = self.site.everything(newest.tick)

    @rule(name=st.sampled_from(sorted(EDITS)), deploy=st.booleans())
    def edit(self, name: str, deploy: bool) -> None:
        """Edit a model, or undo the edit; production may have to wait for `promote`."""
        file = self.site.root / "models" / f"{name}.sql"
        plain, other = EDITS[name]
        old, new = (other, plain) if name in self.edited else (plain, other)
        self.edited ^= {name}
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        if deploy:
            self.site.prepared = prepared(self.site.root)

    @precondition(lambda self: len(self.seen) > 1)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        """Roll back to an older tick, whatever was edited or crashed since."""
        newest = tick_of(self.site.ledger).tick
        to = data.draw(st.sampled_from(sorted(self.seen.keys() - {newest})))
        rollback.roll_back(self.site.ledger, to, self.now, Console(quiet=True))
        self.last = tick_of(self.site.ledger).tick
        assert self.last > newest
        self.seen[self.last] = self.seen[to]
        self.now = max(self.now, tick_of(self.site.ledger).as_of)

    @rule(keep=st.integers(1, 3))
    def maintain(self, keep: int) -> None:
        """Run maintenance if no tick was cut short; ticks that it deletes aren't read any more."""
        kept, tried = ([tick.tick for tick in site.ledger.newest(keep)] for site in (self.site, self.dev))
        try:
            done = maintenance.vacuum(self.site.ledger, keep, datetime.now(timezone.utc), lambda _: None)
        except rollback.UsageError as error:
            assert "a build failed" in str(error)
            return
        self.tried = {tick: rows for tick, rows in self.tried.items() if tick in tried}
        was = self.seen[kept[0]]
        self.seen = {tick: rows for tick, rows in self.seen.items() if tick in kept}
        if done.tick is not None:
            self.seen[done.tick] = was
            self.last = done.tick

    @precondition(lambda self: len(self.tried) > 1)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        """Roll the environment back to an older tick of its own."""
        to = data.draw(st.sampled_from(sorted(self.tried)[:-1]))
        rollback.roll_back(self.dev.ledger, to, self.now, Console(quiet=True))
        self.tried[tick_of(self.dev.ledger).tick] = self.tried[to]

    @invariant()
    def what_was_tried_is_as_it_was(self) -> None:
        """The environment's latest tick never changes, whatever production does."""
        if self.tried:
            assert self.dev.everything() == self.tried[max(self.tried)]

    @invariant()
    def every_tick_is_as_it_was(self) -> None:
        """The latest tick and the oldest retained one always have the same rows."""
        published = self.site.ledger.read().published
        if published is None:
            return
        for tick in {min(self.seen), max(self.seen), published.tick}:
            assert self.site.everything(tick) == self.seen[tick]


@pytest.mark.parametrize("number", range(3))
def test_readers_see_the_truth_after_random_events(number: int) -> None:
    """Two lives of fifteen steps from each seed; the database is empty, so that runs are independent."""
    # A life takes seconds: shrinking a failing one takes minutes, and is left to its debugger.
    plan = settings(
        max_examples=2,
        stateful_step_count=15,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(Life), settings=plan)  # type: ignore[no-untyped-call]
