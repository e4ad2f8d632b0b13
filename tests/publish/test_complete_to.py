"""Until which transaction a table is complete, by the states of a published tick."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from sqlrun.operations import rollback
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import TableState, committed_until, complete_to, from_json, to_json
from sqlrun.source_api import CompleteTo

AT = datetime(2026, 11, 24, 6, 36, 58, tzinfo=timezone.utc)
SHOP = CompleteTo("kafka", "shop.transaction", "772", AT, 40, 3)
CRM = CompleteTo("kafka", "crm.transaction", "9", None, 12)


def table(name: str, version: int, complete: CompleteTo | None = None, **inputs: int) -> TableState:
    """Return a state whose inputs are tables with the same path."""
    read = {each: (f"{each}/x", number) for each, number in inputs.items()}
    return TableState(f"{name}/x", version, AT, read, complete=complete)


TABLES = {
    "orders": table("orders", 5, SHOP),
    "items": table("items", 7, SHOP),
    "people": table("people", 2, CRM),
    "seed": table("seed", 1),
    "joined__state_1": table("joined__state_1", 3, orders=5),
    "joined": table("joined", 3, joined__state_1=3, items=7),
    "both": table("both", 1, joined=3, people=2, seed=1),
    "late": table("late", 1, joined=2, people=2),
}


def test_a_table_is_complete_as_far_as_the_sources_below_it() -> None:
    assert complete_to(TABLES, "orders") == (SHOP,)
    assert complete_to(TABLES, "joined") == (SHOP,)
    assert complete_to(TABLES, "both") == (CRM, SHOP)
    assert complete_to(TABLES, "seed") == ()


def test_a_table_that_has_not_read_the_newest_rows_claims_nothing() -> None:
    """Neither does one of two landing tables of a database that differ."""
    assert complete_to(TABLES, "late") == (CRM,)
    apart = {**TABLES, "items": table("items", 7, replace(SHOP, transaction="771"))}
    assert complete_to(apart, "joined") == ()


def test_the_earliest_commit_of_all_databases_counts() -> None:
    """Of a database that isn't known, or whose newest rows a table lacks, nothing is claimed."""
    later = replace(SHOP, topic="pay.transaction", committed_at=AT.replace(hour=7))
    tables = {**TABLES, "payments": table("payments", 1, later)}

    assert committed_until(tables, ["seed", "people"]) is None
    assert committed_until(tables, ["payments"]) == AT.replace(hour=7)
    assert committed_until(tables, ["payments", "joined", "seed"]) == AT
    assert committed_until(tables, ["payments", "both"]) is None
    assert committed_until({**tables, "people": table("people", 2, later)}, ["late"]) is None


def test_the_list_of_ticks_says_it_of_the_current_one(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "shop")
    for tick, tables in ((1, {"seed": TABLES["seed"]}), (2, TABLES)):
        pinned = ledger.pin(tick, AT, tables, AT, "test")
        ledger.publish(tick, AT, tables, AT, "test", pinned)

    assert rollback.list_ticks(ledger, 0)[-2:] == [
        "Tick 2 is complete to the transaction 9 of crm.transaction.",
        "Tick 2 is complete to the transaction 772 of shop.transaction at 2026-11-24 06:36:58 UTC.",
    ]


def test_the_ledger_keeps_it_and_reads_rows_without_it() -> None:
    text = to_json(TABLES)
    assert from_json(text) == TABLES

    older = json.loads(text)
    for state in older.values():
        state.pop("complete", None)
    assert {state.complete for state in from_json(json.dumps(older)).values()} == {None}
    assert to_json({"seed": TABLES["seed"]}) == json.dumps({"seed": older["seed"]}, sort_keys=True)
