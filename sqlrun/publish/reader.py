"""Rows of a published tick's tables, without a JVM. Shell: Delta files, DuckDB."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.errors import UsageError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.query import QUARANTINED_ROWS
from sqlrun.publish import environments
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published, TableState, own_tables

if TYPE_CHECKING:
    import pyarrow as pa

QUARANTINE, RESCUED = "__quarantine", "__rescued"
# Named subsets of a landing table: the hidden columns that each shows, and its condition on rows.
PARTS = (
    (QUARANTINE, landing_query.PROVENANCE, QUARANTINED_ROWS),
    (
        RESCUED,
        (StoredColumn(landing_query.RESCUED, "string"), *landing_query.PROVENANCE[2:]),
        f"{landing_query.RESCUED} is not null",
    ),
)


def relation(warehouse: str, name: str, state: TableState, label: str = "") -> Relation:
    """Bind a name to a table at its published version."""
    columns = tuple(StoredColumn(c, kind) for c, kind in state.columns)
    return Relation(
        label or name, f"{warehouse}/{state.path}", columns, "new", version=state.version, where=state.where
    )


def nothing_published(ledger: Ledger) -> UsageError:
    """Return the error for a warehouse without a published tick."""
    if ledger.env and ledger.env not in environments.names(ledger.warehouse):
        return environments.unknown(ledger)
    if ledger.env:
        return UsageError(
            f"environment {ledger.env} of {ledger.warehouse} has no published tick yet. "
            f"Run `sqlrun build --env {ledger.env}` with its profile."
        )
    return UsageError(f"nothing is published in {ledger.warehouse} yet. Run `sqlrun build` with its profile.")


def tick_of(ledger: Ledger, tick: int | None = None) -> Published:
    """Return a published tick, the latest by default.

    Raises: UsageError if there is none, or the given one was never published or is no longer retained.
    """
    newest = ledger.read().published
    if newest is None:
        raise nothing_published(ledger)
    if tick is None or tick == newest.tick:
        return newest
    found = ledger.published(tick)
    if found is None:
        oldest = ledger.entries()[-1].tick
        if tick < oldest:
            raise UsageError(f"tick {tick} is no longer retained. The oldest retained tick is {oldest}")
        raise UsageError(
            f"tick {tick} was never published. The newest tick is {newest.tick}. `sqlrun ticks` lists all ticks."
        )
    return found


def names(published: Published) -> list[str]:
    """Return the names of a tick's tables, and of the parts of its landing tables."""
    tables = own_tables(published.tables)
    return [*tables, *(f"{n}{ending}" for n, s in tables.items() if s.where for ending, _, _ in PARTS)]


def find(published: Published, warehouse: str, name: str) -> Relation:
    """Return a table, or the quarantine or the rescued fields of a landing table.

    Raises: UsageError that suggests similar names.
    """
    tables = own_tables(published.tables)
    if name in published.tables:
        return relation(warehouse, name, published.tables[name])
    for ending, hidden, rows in PARTS:
        base = name.removesuffix(ending)
        if name.endswith(ending) and base in tables and tables[base].where:
            state = tables[base]
            columns = (*hidden, *(StoredColumn(c, kind) for c, kind in state.columns))
            return Relation(name, f"{warehouse}/{state.path}", columns, "new", version=state.version, where=rows)
    known = names(published)
    near = difflib.get_close_matches(name, known, 1)
    advice = f"Did you mean `{near[0]}`?" if near else f"Tables: {', '.join(sorted(known))}."
    raise UsageError(f"tick {published.tick} has no table `{name}`. {advice}")


def query(sql: str, relations: Iterable[Relation], folder: str = "") -> pa.Table:
    """Run a SELECT in DuckDB over published tables; with `folder`, it may open files below this folder alone."""
    from sqlrun.engines.duckdb.engine import DuckDBEngine

    engine = DuckDBEngine(folder=folder)
    try:
        return engine.query(sql, tuple(relations))
    finally:
        engine.close()
