"""Relations of a statement as DuckDB views, or as parts of the statement. Shell: DuckDB and Delta files."""

from __future__ import annotations

import re
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.engines.duckdb import matching_rows, outside_files, scan
from sqlrun.engines.duckdb.scan import Reads
from sqlrun.transpile.writer import identifier

WITH = re.compile(r"\s*with\s+(recursive\s+)?", re.IGNORECASE)


def register(session: Any, relations: tuple[Relation, ...], reads: Reads) -> None:
    """Create a temporary view for each relation, by its name."""
    for relation in relations:
        name = identifier(relation.name, "duckdb")
        session.execute(f"create or replace temp view {name} as {_body(session, relation, reads)}")


def over(session: Any, relations: tuple[Relation, ...], reads: Reads, sql: str) -> str:
    """Return a SELECT with the relations as its parts: DuckDB would open a view's files twice, at creation and reading.

    If the query has a part with the name of a relation, the relations become views.
    """
    if any(_names_a_part(relation.name, sql) for relation in relations):
        register(session, relations, reads)
        return sql
    parts = [
        f"{identifier(relation.name, 'duckdb')} as not materialized ({_body(session, relation, reads)})"
        for relation in relations
    ]
    return with_parts(sql, parts)


def with_parts(sql: str, parts: list[str]) -> str:
    """Prepend named parts to those of a SELECT.

    >>> with_parts("with b as (select * from a) select * from b", ["a as (select 1)"])
    'with a as (select 1), b as (select * from a) select * from b'
    >>> with_parts("select * from a", ["a as (select 1)"])
    'with a as (select 1) select * from a'
    """
    if not parts:
        return sql
    begun = WITH.match(sql)
    if begun is None:
        return f"with {', '.join(parts)} {sql}"
    return f"with {begun[1] or ''}{', '.join(parts)}, {sql[begun.end() :]}"


def _names_a_part(name: str, sql: str) -> bool:
    named = rf'(?<![\w"])"?{re.escape(name)}"?\s*(\([^()]*\)\s*)?as\s+(not\s+materialized\s*|materialized\s*)?\('
    return re.search(named, sql, re.IGNORECASE) is not None


def _body(session: Any, relation: Relation, reads: Reads) -> str:
    match relation.row_set:
        case "old" | "new" if relation.given_keys.columns:
            return matching_rows.of_relation(session, relation, reads)
        case "old" | "new":
            return scan.rows(session, relation, reads)
        case "changes":
            return scan.changes(session, relation, reads)
        case "snapshot":
            return outside_files.snapshot(session, relation, reads)
        case "difference":
            return outside_files.difference(session, relation, reads)
