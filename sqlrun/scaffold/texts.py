"""The text of a new project's files: settings, profiles, sources and staging models. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlrun.load.sources import NESTED
from sqlrun.project import JSON, Column
from sqlrun.scaffold.tables import Table
from sqlrun.sources.file_choice import ENDINGS
from sqlrun.transpile.writer import identifier
from sqlrun.unit_tests.author import skeletons
from sqlrun.unit_tests.author.yaml_writer import scalar

GROUP = "raw"
IGNORED = "# What builds write.\nwarehouse/\ntarget/\n.venv/\n__pycache__/\n"
DUCKDB = """\
# DuckDB computes, delta-rs commits: no Java is needed.
engine: duckdb

# Folder of the tables, relative to the project.
warehouse: warehouse/duckdb

threads: 2
"""
SPARK = """\
# Spark with Delta Lake: `sqlrun build --profile spark`. Needs Java 17 or newer.
engine: spark

warehouse: warehouse/spark

threads: 2

# Names that begin with `spark.` are passed to Spark:
# settings:
#   spark.driver.memory: 4g
"""


def settings(name: str) -> str:
    """Return the project's pyproject.toml."""
    return f'[tool.sqlrun]\nname = {json.dumps(name)}\nprofile = "duckdb"\n'


def common(name: str) -> Mapping[str, str]:
    """Return the files that every new project has."""
    return {
        "pyproject.toml": settings(name),
        ".gitignore": IGNORED,
        "profiles/duckdb.yml": DUCKDB,
        "profiles/spark.yml": SPARK,
    }


def over_tables(tables: Sequence[Table], folder: str) -> Mapping[str, str]:
    """Return a source and a staging model for each table. `folder` has the data, relative to the project."""
    files = {"models/staging/_sources.yml": "\n".join(_sources(tables, folder)) + "\n"}
    for table in tables:
        name = f"stg_{table.name}"
        files[f"models/staging/{name}.sql"] = _query(table)
        files[f"models/staging/{name}.yml"] = _contract(name, table)
    return files


def _query(table: Table) -> str:
    """Return the query of a staging model, which gives columns names that need no quotes."""
    items = [
        name if name == column.name else f"{identifier(column.name, 'spark')} as {name}"
        for column, name in zip(table.columns, table.names, strict=True)
    ]
    listed = ",\n    ".join(items)
    return f"select\n    {listed}\nfrom {{{{ source('{GROUP}', '{table.name}') }}}}\n"


def _sources(tables: Sequence[Table], folder: str) -> Iterator[str]:
    yield from ("sources:", f"  - name: {GROUP}", "    description: Describe this source.", "    tables:")
    for table in tables:
        yield f"      - name: {table.name}"
        yield "        description: Describe this table."
        yield f"        format: {table.first.format}"
        yield f"        path: {scalar(folder)}"
        if table.pattern:
            yield f"        files: {json.dumps(table.pattern, ensure_ascii=False)}"
        if table.first.format == JSON and not _is_plain_folder(table):
            yield "        document: auto"
        if table.first.options:
            marks = ", ".join(f"{key}: {scalar(value)}" for key, value in table.first.options.items())
            yield f"        csv: {{{marks}}}"
        yield "        columns:"
        # Columns of a source stand two levels deeper than those of a model.
        yield from (f"    {_column(column)}" for column in table.columns)


def _column(column: Column) -> str:
    """Return a source's column. Fields inside of it may be missing in records that weren't sampled."""
    line = skeletons.column_line(column)
    return f"{line[:-1]}, nulls_inside: true}}" if column.type.startswith(NESTED) else line


def _is_plain_folder(table: Table) -> bool:
    """Return whether the files are JSON lines in the folder itself, not compressed: what a source reads by default.

    A pattern selects files at any depth and of any ending, but only of lines.
    """
    return not any(one.is_document for one in table.samples) and (
        table.pattern != "" or all(_is_plain(one.path) for one in table.samples)
    )


def _is_plain(path: str) -> bool:
    return "/" not in path and path.endswith(ENDINGS[JSON])


def _contract(name: str, table: Table) -> str:
    lines = ["models:", f"  - name: {name}", "    description: Every record as it came.", "    columns:"]
    columns = (replace(column, name=name) for column, name in zip(table.columns, table.names, strict=True))
    return "\n".join([*lines, *map(skeletons.column_line, columns)]) + "\n"
