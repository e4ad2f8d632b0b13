"""The rows that `sqlrun show` reads: of a table, or of a view, which no tick stores. Shell: the project, DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlrun import pipeline
from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.errors import EngineError, ProjectError, UsageError
from sqlrun.publish import reader, view_query
from sqlrun.publish.table_state import Published
from sqlrun.runtime.disk_cache import Cache

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlrun.pipeline import Prepared

# Begins the names of the tables that a view's query reads.
LABEL = "_read"


@dataclass(frozen=True, slots=True)
class Readable:
    """A FROM item with its columns, the relations that it reads, and the names of these tables.

    `missing` are columns of the project that the tick's tables lack: a view's query may be newer than they are.
    """

    what: str
    item: str
    columns: tuple[StoredColumn, ...]
    relations: tuple[Relation, ...]
    tables: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def rows(self, rest: str) -> pa.Table:
        """Return the rows of SELECT with the text behind FROM.

        Raises: UsageError if the tick's tables lack a column that the query reads.
        """
        names = ", ".join(f'"{column.name}"' for column in self.columns)
        try:
            return reader.query(f"select {names} from {self.item}{rest}", self.relations)
        except EngineError as error:
            if not self.missing:
                raise
            lacking = ", ".join(f"`{name}`" for name in self.missing)
            why = f"{self.what} can't be computed: the tables of this tick lack {lacking}"
            raise UsageError(f"{why}. Run `sqlrun build` first.") from error


def find(root: Path, warehouse: str, published: Published, name: str) -> Readable:
    """Return a table, a part of a landing table, or a view of the project as it is now.

    Raises: UsageError if there is neither; ProjectError if DuckDB can't run the view's query.
    """
    try:
        relation = reader.find(published, warehouse, name)
    except UsageError as error:
        return _of_view(_with_view(root, name, error), warehouse, published, name)
    return Readable(name, f'"{relation.name}"', tuple(relation.columns), (relation,), (name,))


def _of_view(prepared: Prepared, warehouse: str, published: Published, name: str) -> Readable:
    from sqlrun.engines.duckdb import binding

    views, queries = prepared.workspace.views, {query.name: query for query in prepared.queries}
    fit = binding.Fit(prepared.project, prepared.workspace.models, None)
    problems = binding.problems(fit, [name, *view_query.below_views(queries, views, name)])
    if problems:
        raise ProjectError(problems)
    text, relations = view_query.over_tick(queries, views, name, published, warehouse, LABEL)
    tables = view_query.read_tables(queries, views, name)
    model = queries[name].rendered.model
    kinds = {column.name: column.type for column in model.columns}
    columns = tuple(StoredColumn(column, kinds.get(column, "")) for column in queries[name].columns)
    missing = [
        f"{table}.{column}"
        for table in tables
        for column in _columns_now(prepared, table)
        if column not in dict(published.tables[table].columns)
    ]
    return Readable(f"the view {name}", f"({text})", columns, tuple(relations), tables, tuple(missing))


def _columns_now(prepared: Prepared, table: str) -> list[str]:
    project = prepared.project
    columns = {model.name: model.columns for model in project.models} | {
        seed.name: seed.columns for seed in project.seeds
    }
    return [column.name for column in columns.get(table, ())]


@contextmanager
def refusing_views(root: Path, name: str) -> Iterator[None]:
    """Explain an error about a table that is a view: a command needs rows that a tick has stored."""
    try:
        yield
    except UsageError as error:
        prepared = _with_view(root, name, error)
        queries = {query.name: query for query in prepared.queries}
        tables = view_query.read_tables(queries, prepared.workspace.views, name)
        others = " or ".join(f"`sqlrun diff {table}`" for table in tables) or "another table"
        why = f"{name} is a view, and no tick stores its rows"
        raise UsageError(f"{why}. Compare what it reads: {others}. `sqlrun show {name}` prints its rows.") from None


def _with_view(root: Path, name: str, error: UsageError) -> Prepared:
    """Return the project if it has a view of this name. Raise the error if not."""
    try:
        prepared = pipeline.prepare(root, Cache.of(root))
    except ProjectError:
        hint = f"If `{name}` is a view, correct the project first: `sqlrun parse` prints its mistakes."
        raise UsageError(f"{str(error).removesuffix('.')}. {hint}") from None
    if name not in prepared.workspace.views:
        raise error
    return prepared
