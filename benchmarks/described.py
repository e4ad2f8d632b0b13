"""A described project, independent of any tool's format. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

A_DAY, A_PRICE, ID, COUNT, MONEY = "date", "decimal(10,2)", "string", "bigint", "decimal(18,2)"


@dataclass(frozen=True, slots=True)
class Column:
    """One output column: name, Spark type, description, whether it is never NULL."""

    name: str
    type: str
    text: str
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Described:
    """One model: `sql` is a template for all tools, except for `hours`, the temporal filter."""

    name: str
    folder: str
    sql: str
    text: str
    grain: tuple[str, ...]
    columns: tuple[Column, ...]
    checks: tuple[tuple[str, str, object], ...] = ()  # (kind, column, bound or words)
    tags: tuple[str, ...] = ()
    view: bool = False
    repeats: bool = False
    example: tuple[str, dict[str, object], dict[str, object]] | None = None  # input, a row of it, the resulting row


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of files."""

    group: str
    name: str
    text: str
    columns: tuple[Column, ...]


@dataclass(slots=True)
class World:
    """All models, each after its inputs."""

    models: list[Described] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)


def ctes(reads: dict[str, str]) -> str:
    """Return import CTEs, in the form of dbt's style guide."""
    parts = [f"{alias} as (\n    select * from {{{{ ref('{model}') }}}}\n)" for alias, model in reads.items()]
    return "with " + ",\n\n".join(parts)
