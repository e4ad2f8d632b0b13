"""The oracle: every model's whole query, one after the other, on DuckDB over the landed events."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import duckdb

from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment
from sqlrun.publish.reader import relation
from sqlrun.transpile.writer import identifier, type_name
from tests.support.memory import frozen
from tests.support.projects import READER, Site, rows_of


def differences(site: Site, as_of: datetime) -> dict[str, tuple[Counter[Any], Counter[Any]]]:
    """Return for each model the wrong rows and the missing rows; empty if all are right."""
    published = site.ledger.read().published
    assert published is not None
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    queries = {m.name: m.query for m in site.prepared.workspace.models}
    given = [s.name for s in site.prepared.project.seeds]
    given += [m.name for m in site.prepared.workspace.tables if m.source is not None]
    for name in given:
        bound = relation(site.warehouse, name, published.tables[name])
        rows = READER.query(f'select * from "{name}"', (bound,))
        connection.register(f"{name}__new", rows)
    found = {}
    for model in site.prepared.workspace.models:
        if model.source is not None:
            continue
        contract = model.query.rendered.model
        items = ", ".join(
            f"cast({identifier(c, 'duckdb')} as {type_name(_type(contract, c), 'duckdb')}) as {identifier(c, 'duckdb')}"
            for c in model.query.columns
        )
        text = whole_query(queries, model.name, (), Moment(as_of, None), "duckdb")
        connection.execute(f'create table "{model.name}__new" as select {items} from ({text})')
        if model.is_view:
            continue
        whole = Counter(frozen(list(r)) for r in connection.execute(f'from "{model.name}__new"').fetchall())
        names = model.query.columns
        kept = Counter(frozen([row[c] for c in names]) for row in _kept(site, published, model.name))
        if kept != whole:
            found[model.name] = (kept - whole, whole - kept)
    connection.close()
    return found


def _type(contract: Any, name: str) -> str:
    column = contract.column(name)
    assert column is not None
    return str(column.type)


def _kept(site: Site, published: Any, name: str) -> list[dict[str, Any]]:
    return rows_of(relation(site.warehouse, name, published.tables[name]))
