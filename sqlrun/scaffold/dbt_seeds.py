"""dbt's seeds: each as it is, with a contract whose types are inferred from its rows. Shell: the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqlrun.scaffold import dbt_contracts, dbt_files, samples, tables
from sqlrun.scaffold.dbt_types import TYPES
from sqlrun.scaffold.imported import Import

# Keys of a seed that are taken, or that have no effect on rows.
KNOWN = (
    "name", "description", "columns", "tests", "data_tests", "meta", "config", "config.column_types",
    "config.+column_types",
)  # fmt: skip


def read(
    base: Path,
    root: Path,
    made: Import,
    described: Iterable[Mapping[str, Any]],
    types: Mapping[str, Mapping[str, Any]],
) -> None:
    """Copy the seeds of a folder, each with a contract.

    `described` are the entries of YAML files, `types` those of the project's settings, by the seed's name.
    """
    known = {str(node.get("name")): node for node in described}
    for file in dbt_files.below([base], ".csv"):
        path = f"seeds/{file.relative_to(base).as_posix()}"
        made.files[path] = dbt_files.text(file, root)
        (table,) = tables.of_samples([samples.sample(file.parent, file.name)], file.stem, alone=True)
        node = known.get(file.stem, {})
        given = {**types.get(file.stem, {}), **_of_config(node, "column_types")}
        made.seeds[file.stem] = tuple(column.name for column in table.columns)
        made.files[f"{path.removesuffix('.csv')}.yml"] = dbt_files.dumped(
            {"seeds": [_entry(file, node, table, made, given)]}
        )


def _entry(
    file: Path, node: Mapping[str, Any], table: tables.Table, made: Import, types: Mapping[str, Any]
) -> dict[str, Any]:
    given = {str(key).lower(): str(kind) for key, kind in types.items()}
    about = {str(column.get("name")).lower(): column for column in node.get("columns") or ()}
    entry: dict[str, Any] = {"name": file.stem}
    entry |= {"description": str(node["description"])} if node.get("description") else {}
    entry |= {"meta": node["meta"]} if node.get("meta") else {}
    config = node.get("config") or {}
    for key in (*node, *(f"config.{key}" for key in config)):
        if key not in KNOWN:
            made.notes.append(f"seeds/{file.name}: `{key}` was left out")
    never: set[str] = set()
    for use in dbt_contracts.uses_of(f"seeds/{file.name}", file.stem, node):
        if use.word == "unique" and use.column and not use.settings and "grain" not in entry:
            entry["grain"] = [use.column]
        elif use.word == "not_null" and use.column and not use.settings:
            never.add(use.column.lower())
        else:
            made.uses.append(use)
    columns = []
    for column in table.columns:
        kind = given.get(column.name.lower(), column.type)
        said = about.get(column.name.lower(), {})
        written: dict[str, Any] = {"name": column.name, "data_type": TYPES.get(kind.lower(), kind)}
        written |= {key: said[key] for key in ("description", "meta") if said.get(key)}
        written |= {"nulls": False} if column.name.lower() in never else {}
        columns.append(written)
    return {**entry, "columns": columns}


def _of_config(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    config = node.get("config") or {}
    return config.get(key) or config.get(f"+{key}") or {}
