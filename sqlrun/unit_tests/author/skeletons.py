"""Skeletons of a new model: its query and its contract, in the project's style. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlrun.errors import Place, UsageError
from sqlrun.load.contract import bad_name
from sqlrun.load.yaml_reader import did_you_mean, listed
from sqlrun.project import Column, Model, Project, Seed, Source
from sqlrun.transpile.dialect import is_plain
from sqlrun.transpile.writer import identifier
from sqlrun.unit_tests.author.yaml_writer import scalar

TO_WRITE = "Describe this column."
PREFIXES = ("stg_", "fct_", "dim_")
Noun = Model | Seed | Source


@dataclass(frozen=True, slots=True)
class Spot:
    """Location of a new model: `folder` under models/ ("" for none), and its name."""

    folder: str
    name: str

    @property
    def stem(self) -> str:
        """Return the path of its files without suffix, relative to the project."""
        return "/".join(part for part in ("models", self.folder, self.name) if part)


def place_of(text: str) -> Spot:
    """Parse `marts/x/y` as an analyst types it, with or without `models/` before and `.sql` behind it.

    Raises: UsageError for a path outside of models/ or an invalid name.

    >>> place_of("models/marts/x/y.sql").stem
    'models/marts/x/y'
    """
    bare = text.removeprefix("./").removeprefix("models/")
    bare = bare.removesuffix(".sql").removesuffix(".yml")
    *folders, name = bare.split("/")
    for folder in folders:
        if not re.fullmatch(r"\w[\w.-]*", folder):
            raise UsageError(f"`{text}` lacks a folder of models/. Write it as marts/{name or 'name'}")
    wrong = bad_name(name)
    if wrong:
        raise UsageError(f"invalid name `{name}` for a model. {wrong}")
    return Spot("/".join(folders), name)


def require_free(project: Project, name: str) -> None:
    """Require that no model, seed or source has the name. Raises: UsageError."""
    taken = [(m.name, m.file) for m in project.models] + [(s.name, s.file) for s in project.seeds]
    taken += [(s.table, str(s.place)) for s in project.sources]
    for other, where in taken:
        if other.lower() == name.lower():
            raise UsageError(f"duplicate name `{name}`, also in {where}. Choose another name.")


def all_of(project: Project) -> tuple[Noun, ...]:
    """Return all that a query can read: models, seeds and sources."""
    return (*project.models, *project.seeds, *project.sources)


def noun(project: Project, text: str) -> Noun:
    """Return an input of a new model: a model, a seed, or a source as `group.table`. Raises: UsageError."""
    known = {f"{n.group}.{n.name}" if isinstance(n, Source) else n.name: n for n in all_of(project)}
    name = text.removeprefix("source:")
    if name not in known:
        raise UsageError(
            f"unknown input `{text}`. Models, seeds and sources: {listed(known)}.{did_you_mean(name, known)}"
        )
    return known[name]


def call(found: Noun) -> str:
    """Return the expression by which a query or a unit test names it."""
    return f"source('{found.group}', '{found.name}')" if isinstance(found, Source) else f"ref('{found.name}')"


def sql(read: Sequence[Noun]) -> str:
    """Return a query that imports each input as a CTE and selects the columns of the first.

    >>> print(sql([]))
    select
        1 as id
    <BLANKLINE>
    """
    if not read:
        return "select\n    1 as id\n"
    ctes: list[str] = []
    for found in read:
        ctes.append(_alias(found.name, ctes))
    imports = [
        f"{cte} as (\n    select * from {{{{ {call(found)} }}}}\n)" for cte, found in zip(ctes, read, strict=True)
    ]
    columns = ",\n    ".join(_name(column.name) for column in read[0].columns)
    together = ",\n\n".join(imports)
    return f"with {together}\n\nselect\n    {columns}\nfrom {ctes[0]}\n"


def _alias(name: str, taken: Sequence[str]) -> str:
    """Return a CTE's name: that of its input without the layer's prefix."""
    short = next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)
    if is_plain(short) and short not in taken:
        return short
    return name if is_plain(name) and name not in taken else f"{name}_rows"


def _name(column: str) -> str:
    return column if is_plain(column) else identifier(column, "spark")


def contract(name: str, read: Sequence[Noun]) -> str:
    """Return the contract of that query: the first input's columns with their descriptions, and its grain."""
    columns = read[0].columns if read else (Column("id", "int", TO_WRITE, Place(""), nullable=False),)
    lines = ["models:", f"  - name: {name}", f"    description: {TO_WRITE}"]
    grain = _grain(read, columns)
    if grain:
        lines.append(f"    grain: [{', '.join(map(scalar, grain))}]")
    if read and isinstance(read[0], Source):
        lines.append("    repeats: true")
    lines.append("    columns:")
    return "\n".join([*lines, *map(column_line, columns)]) + "\n"


def _grain(read: Sequence[Noun], columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the columns that rows are unique by. A source may send a row twice, so there it is the first column."""
    if not read or isinstance(read[0], Source):
        return (columns[0].name,)
    return () if isinstance(read[0], Model) and read[0].repeats else read[0].grain


def column_line(column: Column) -> str:
    """Return a column as a line of a contract."""
    parts = [f"name: {scalar(column.name)}", f"data_type: {scalar(column.type)}"]
    parts.append(f"description: {_quoted(column.description or TO_WRITE)}")
    if column.unit:
        parts.append(f"unit: {_quoted(column.unit)}")
    if not column.nullable:
        parts.append("nulls: false")
    if column.tags:
        parts.append(f"tags: [{', '.join(map(scalar, column.tags))}]")
    return f"      - {{{', '.join(parts)}}}"


def _quoted(text: str) -> str:
    written = scalar(text)
    return written if written.startswith('"') else f'"{written}"'
