"""Tables of two published ticks compared: columns, rows, and values by key. Shell: Delta files, DuckDB.

The ticks may be those of two environments. Tables that both read from the same version aren't read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.errors import UsageError
from sqlrun.publish.reader import find, query
from sqlrun.publish.table_state import Published, own_tables
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import identifier

# Which rows of two tables a difference is of.
LEFT, CAME = "-", "+"


@dataclass(frozen=True, slots=True)
class Side:
    """A published tick of an environment; `name` is the environment's, for people."""

    name: str
    warehouse: str
    published: Published


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows of two tables that were matched by the table's grain. `columns` are the numbers of changed values."""

    left: int
    came: int
    changed: int
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The difference of a table between two ticks.

    `columns` are texts about columns that differ. Rows are compared by the columns that both have: `left` and `came`
    are the numbers of rows that only one of them has, as bags. `rows` are the tables' numbers of rows, None for a table
    that isn't there. `keys` is None without a grain.
    """

    name: str
    shared: bool
    rows: tuple[int | None, int | None]
    columns: tuple[str, ...] = ()
    left: int = 0
    came: int = 0
    keys: Keys | None = None

    @property
    def is_same(self) -> bool:
        """Return whether both ticks have the same table."""
        return self.shared or (None not in self.rows and not (self.columns or self.left or self.came))

    @property
    def share(self) -> float | None:
        """Return the share of rows that both have, of all rows that either has; None without any row."""
        before, after = self.rows
        if before is None or after is None or not before + self.came:
            return None
        return (before - self.left) / (before + self.came)


def tables(before: Side, after: Side, grains: Mapping[str, Sequence[str]]) -> Iterator[Compared]:
    """Yield the comparison of each table of two ticks, by name; `grains` are columns that identify a row."""
    old, new = own_tables(before.published.tables), own_tables(after.published.tables)
    for name in sorted({*old, *new}):
        yield table(name, before, after, grains.get(name, ()))


def table(name: str, before: Side, after: Side, grain: Sequence[str] = ()) -> Compared:
    """Return the comparison of a table; one of the ticks may lack it.

    Raises: UsageError if both lack it.
    """
    there = [name in own_tables(side.published.tables) for side in (before, after)]
    if not any(there):
        find(after.published, after.warehouse, name)  # its error names similar tables
        raise UsageError(f"{name} isn't a table of both ticks")
    if not all(there):
        side = before if there[0] else after
        count = _count(find(side.published, side.warehouse, name))
        return Compared(name, False, (count, None) if there[0] else (None, count))
    old, new = (side.published.tables[name] for side in (before, after))
    if (before.warehouse, old.path, old.version) == (after.warehouse, new.path, new.version):
        return Compared(name, True, (None, None))
    pair = _pair(name, before, after)
    common = _common(*pair)
    counts = _one(_counts(common), pair)
    keys = _by_key(grain, common, pair) if grain and set(grain) <= set(common) else None
    return Compared(
        name, False, (counts["n_before"], counts["n_after"]), tuple(_column_texts(*pair)),
        counts["n_left"], counts["n_came"], keys,
    )  # fmt: skip


def sample(name: str, before: Side, after: Side, limit: int) -> list[dict[str, object]]:
    """Return rows that only one of the ticks has, by the columns that both have; all with `limit` 0.

    Rows are ordered by value, so that the two versions of a row stand below each other.
    """
    pair = _pair(name, before, after)
    common = _common(*pair)
    if not common:
        return []
    types = {column.name: column.type for column in pair[0].columns}
    order = ", ".join(identifier(c, "duckdb") for c in common if "<" not in types[c])
    sql = f"""
        select '{LEFT}' as change, * from ({_except(common, "before", "after")})
        union all
        select '{CAME}' as change, * from ({_except(common, "after", "before")})
        order by {f"{order}, " if order else ""}change desc
        {f"limit {limit}" if limit else ""}
    """
    return arrow_rows.plain(query(sql, pair))


def _pair(name: str, before: Side, after: Side) -> tuple[Relation, Relation]:
    old, new = (find(side.published, side.warehouse, name) for side in (before, after))
    return replace(old, name="before"), replace(new, name="after")


def _common(before: Relation, after: Relation) -> tuple[str, ...]:
    """Return the names of the columns that both have with the same type."""
    return tuple(column.name for column in before.columns if column in after.columns)


def _column_texts(before: Relation, after: Relation) -> Iterator[str]:
    old, new = _types(before.columns), _types(after.columns)
    yield from (f"{LEFT} {name} {kind}" for name, kind in old.items() if name not in new)
    yield from (f"{CAME} {name} {kind}" for name, kind in new.items() if name not in old)
    yield from (f"{name} {old[name]} -> {new[name]}" for name in old if name in new and old[name] != new[name])


def _types(columns: Sequence[StoredColumn]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def _count(relation: Relation) -> int:
    return int(_one("select count(*) as n from one", (replace(relation, name="one"),))["n"])


def _one(sql: str, relations: tuple[Relation, ...]) -> dict[str, int]:
    row: dict[str, int] = arrow_rows.plain(query(sql, relations))[0]
    return row


def _except(common: Sequence[str], these: str, those: str) -> str:
    names = ", ".join(identifier(name, "duckdb") for name in common)
    return f"select {names} from {these} except all select {names} from {those}"


def _counts(common: Sequence[str]) -> str:
    """Return a query that counts rows. Tables without a common column share no row."""
    left = f"from ({_except(common, 'before', 'after')})" if common else "from before"
    came = f"from ({_except(common, 'after', 'before')})" if common else "from after"
    return f"""
        select
            (select count(*) from before) as n_before,
            (select count(*) from after) as n_after,
            (select count(*) {left}) as n_left,
            (select count(*) {came}) as n_came
    """


def _by_key(grain: Sequence[str], common: Sequence[str], pair: tuple[Relation, Relation]) -> Keys:
    """Return the numbers of keys that left, came and changed, and of changed values by column."""
    keys = [identifier(name, "duckdb") for name in grain]
    others = [name for name in common if name not in grain]
    same = " and ".join(f"b.{key} is not distinct from a.{key}" for key in keys)
    # A key may be NULL, so a column of its own says whether there is a row.
    sides = [f"(select *, true as __is_there from {name})" for name in ("before", "after")]
    differs = [f"b.{identifier(name, 'duckdb')} is distinct from a.{identifier(name, 'duckdb')}" for name in others]
    both = "b.__is_there and a.__is_there"
    columns = [f"count(*) filter ({both} and {test}) as c{place}" for place, test in enumerate(differs)]
    any_differs = " or ".join(differs) or "false"
    found = _one(
        f"""
        select
            count(*) filter (a.__is_there is null) as n_left,
            count(*) filter (b.__is_there is null) as n_came,
            {", ".join([f"count(*) filter ({both} and ({any_differs})) as n_changed", *columns])}
        from {sides[0]} as b full join {sides[1]} as a on {same}
        """,
        pair,
    )
    changed = tuple((name, found[f"c{place}"]) for place, name in enumerate(others) if found[f"c{place}"])
    return Keys(found["n_left"], found["n_came"], found["n_changed"], changed)
