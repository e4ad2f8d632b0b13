"""dbt's catalog.json, version 1: the tables of the published tick, as they are in the warehouse. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlrun.artifacts import unique_ids
from sqlrun.artifacts.nodes import DATABASE, Naming, Values
from sqlrun.project import Column, Model, Seed

SCHEMA = "https://schemas.getdbt.com/dbt/catalog/v1.json"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """One published table: columns with their types, the number of rows (None: unknown), version and tick's time.

    `version` and `as_of` are None for a view.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: int | None = None
    version: int | None = None
    as_of: datetime | None = None

    @property
    def kind(self) -> str:
        """Return what the table is: a table or a view."""
        return "view" if self.version is None else "table"


def catalog(naming: Naming, tables: tuple[CatalogTable, ...], at: datetime, invocation: str) -> Values:
    """Return the document. Sources have their declared columns; a table that isn't published yet is absent."""
    project = naming.project
    nouns: list[Model | Seed] = [*project.models, *project.seeds]
    about = {noun.name: noun.description for noun in nouns}
    comments = {noun.name: {c.name: c.description for c in noun.columns} for noun in nouns}
    return {
        "metadata": unique_ids.head(SCHEMA, at, invocation),
        "nodes": {
            naming.id_of(table.name): {
                "unique_id": naming.id_of(table.name),
                "metadata": _relation(naming.schema, table.name, about.get(table.name, ""), table.kind),
                "columns": _columns(dict(table.columns), comments.get(table.name, {})),
                "stats": _stats(table),
            }
            for table in tables
        },
        "sources": {
            unique_ids.source(project.name, one): {
                "unique_id": unique_ids.source(project.name, one),
                "metadata": _relation(one.group, one.name, one.description),
                "columns": _columns(_types(one.columns), {c.name: c.description for c in one.columns}),
                "stats": {"has_stats": _stat("has_stats", "Has Stats?", False, "", shown=False)},
            }
            for one in project.sources
        },
        "errors": None,
    }


def _types(columns: tuple[Column, ...]) -> Mapping[str, str]:
    return {column.name: column.type for column in columns}


def _relation(schema: str, name: str, comment: str, kind: str = "table") -> Values:
    return {
        "type": kind, "schema": schema, "name": name, "database": DATABASE, "comment": comment or None, "owner": None,
    }  # fmt: skip


def _columns(types: Mapping[str, str], comments: Mapping[str, str]) -> Values:
    return {
        name: {"type": type_, "index": index, "name": name, "comment": comments.get(name) or None}
        for index, (name, type_) in enumerate(types.items(), start=1)
    }


def _stats(table: CatalogTable) -> Values:
    found = {}
    if table.version is not None:
        found["version"] = _stat("version", "Version", table.version, "Version in the published tick")
    if table.as_of is not None:
        found["as_of"] = _stat("as_of", "As of", unique_ids.moment(table.as_of), "Tick that last changed the table")
    if table.rows is not None:
        found["num_rows"] = _stat("num_rows", "# Rows", table.rows, "Approximate count of rows in this table")
    return found | {"has_stats": _stat("has_stats", "Has Stats?", bool(found), "", shown=False)}


def _stat(key: str, label: str, value: bool | str | int, about: str, *, shown: bool = True) -> Values:
    return {"id": key, "label": label, "value": value, "include": shown, "description": about or label}
