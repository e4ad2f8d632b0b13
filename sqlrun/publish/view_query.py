"""The query of a view over the tables of a published tick: no tick stores a view's rows. Shell: the reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlrun.engine_api import Relation
from sqlrun.errors import UsageError
from sqlrun.graph.graph import reach
from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment
from sqlrun.parse.parse import Query
from sqlrun.publish.reader import relation
from sqlrun.publish.table_state import Published


def over_tick(
    queries: Mapping[str, Query], views: Collection[str], name: str, published: Published, warehouse: str, label: str
) -> tuple[str, list[Relation]]:
    """Return a view's query in DuckDB's SQL, and the tables that it reads, each as `label` and its name.

    Raises: UsageError if the tick lacks one of them.
    """
    text = whole_query(queries, name, views, Moment(published.as_of, None), "duckdb", f"{label}_{{name}}")
    found = []
    for table in read_tables(queries, views, name):
        if table not in published.tables:
            raise UsageError(f"{published} has no table `{table}`, which `{name}` reads. Run `sqlrun build` first.")
        found.append(relation(warehouse, table, published.tables[table], f"{label}_{table}"))
    return text, found


def read_tables(queries: Mapping[str, Query], views: Collection[str], name: str) -> tuple[str, ...]:
    """Return the tables that a view reads, also by other views."""
    below = [name, *below_views(queries, views, name)]
    return tuple(dict.fromkeys(ref for one in below for ref in queries[one].rendered.refs if ref not in views))


def below_views(queries: Mapping[str, Query], views: Collection[str], name: str) -> tuple[str, ...]:
    """Return the views that a model reads, directly or by other views, in the order of `views`."""
    edges = {one: tuple(ref for ref in queries[one].rendered.refs if ref in views) for one in (*views, name)}
    reached = reach(edges, {name}) - {name}
    return tuple(view for view in views if view in reached)
