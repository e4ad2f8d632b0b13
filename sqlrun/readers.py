"""Rows as readers see them: the tables of a published tick, without a JVM. Shell: Delta files, DuckDB."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlrun import landing
from sqlrun.engines.protocol import Relation, StoredColumn
from sqlrun.errors import UsageError
from sqlrun.ledger import Ledger
from sqlrun.plan import QUARANTINED_ROWS, own_tables
from sqlrun.ticks import Published, TableState

if TYPE_CHECKING:
    import pyarrow as pa

QUARANTINE = "__quarantine"


def relation(warehouse: str, name: str, state: TableState, label: str = "") -> Relation:
    """Bind a name to a table at its published version."""
    columns = tuple(StoredColumn(c, kind) for c, kind in state.columns)
    return Relation(
        label or name, f"{warehouse}/{state.path}", columns, "new", version=state.version, where=state.where
    )


def nothing_published(ledger: Ledger) -> UsageError:
    """Say that there is nothing to read yet."""
    return UsageError(f"nothing is published in {ledger.warehouse} yet. Run `sqlrun build` with its profile.")


def tick_of(ledger: Ledger, tick: int | None = None) -> Published:
    """Find a published tick, the newest by default.

    Raises: UsageError if there is none, or that one was never published.
    """
    newest = ledger.read().published
    if newest is None:
        raise nothing_published(ledger)
    if tick is None or tick == newest.tick:
        return newest
    found = ledger.published(tick)
    if found is None:
        raise UsageError(f"tick {tick} was never published; the newest is {newest.tick}. `sqlrun ticks` lists them.")
    return found


def find(published: Published, warehouse: str, name: str) -> Relation:
    """Find a table, or the quarantine of a landing table.

    Raises: UsageError naming what is near.
    """
    tables = own_tables(published.tables)
    if name in published.tables:
        return relation(warehouse, name, published.tables[name])
    base = name.removesuffix(QUARANTINE)
    if name.endswith(QUARANTINE) and base in tables and tables[base].where:
        state = tables[base]
        columns = (*landing.HIDDEN, *(StoredColumn(c, kind) for c, kind in state.columns))
        path = f"{warehouse}/{state.path}"
        return Relation(name, path, columns, "new", version=state.version, where=QUARANTINED_ROWS)
    known = [*tables, *(f"{n}{QUARANTINE}" for n, s in tables.items() if s.where)]
    near = difflib.get_close_matches(name, known, 1)
    advice = f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(sorted(known))}."
    raise UsageError(f"tick {published.tick} has no table `{name}`. {advice}")


def query(sql: str, relations: Iterable[Relation]) -> pa.Table:
    """Run a SELECT in DuckDB over published tables."""
    from sqlrun.engines.duckdb import DuckDBEngine

    engine = DuckDBEngine()
    try:
        return engine.query(sql, tuple(relations))
    finally:
        engine.close()
