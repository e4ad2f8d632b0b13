"""A MERGE on Spark: evaluate the delta once, prune the target by literals, run one statement. Shell: Spark."""

from __future__ import annotations

from typing import Any

from sqlrun.engine_api import Append, Load, Merge, Overwrite, Replace, Write
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.merge_sql import same
from sqlrun.engines.spark import merge as spark_merge
from sqlrun.engines.spark import parts
from sqlrun.engines.spark.conf import choose, rows_in
from sqlrun.transpile.writer import identifier, string

SOURCE = "_delta"
# Maximum number of partitions listed in a statement: a longer list costs more than it saves.
MOST_LITERALS = 400


def text_of(write: Write) -> str:
    """Return the SQL of a statement, for messages."""
    match write.statement:
        case Merge(delta=sql) | Append(sql=sql) | Replace(sql=sql) | Overwrite(sql=sql):
            return sql
        case Load():
            return ""


def merge(session: Any, lend: spark_merge.Lend, table: Any, write: Write, statement: Merge) -> None:
    """Execute a MERGE into the open table; append to an empty one, and write nothing if the delta is empty."""
    delta = parts.frame(session, statement.delta)
    if write.base == 0:
        _insert(session, write, statement, delta)
        return
    if spark_merge.merge(session, lend, table, write, statement, delta):
        return
    # Evaluated once: for the literals, and for both passes of the MERGE. (Delta rejects a cached source.)
    delta.localCheckpoint(eager=True).createOrReplaceTempView(SOURCE)
    found = _delta_extent(session, write, statement)
    if found["_count"]:
        choose(session, _target_rows(table, statement, found))
        literals = _literals(session, write, statement, found)
        session.sql(merge_text(write, statement, literals))
    session.catalog.dropTempView(SOURCE)


def overwrite(session: Any, write: Write, statement: Overwrite) -> None:
    """Replace the partitions that a query's rows belong to by these rows; write nothing if there are none."""
    kinds = {c.name: c.type for c in write.table.columns}
    names = write.table.partition_by
    columns = [f"cast({identifier(name, 'spark')} as string)" for name in names]
    each = []
    for row in parts.frame(session, statement.partitions).selectExpr(*columns).collect():
        tests = [
            f"{identifier(name, 'spark')} " + ("is null" if v is None else f"= {literal(v, kinds[name])}")
            for name, v in zip(names, row, strict=True)
        ]
        each.append(f"({' and '.join(tests)})")
    if each:
        frame = parts.frame(session, statement.sql).repartition(*[identifier(name, "spark") for name in names])
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", " or ".join(each))
        writer.save(write.table.path)


def _insert(session: Any, write: Write, statement: Merge, delta: Any) -> None:
    delta.createOrReplaceTempView(SOURCE)
    values = dict(statement.insert)
    items = ", ".join(f"{values[c.name]} as {identifier(c.name, 'spark')}" for c in write.table.columns)
    where = f" where {statement.insert_when}" if statement.insert_when else ""
    frame = session.sql(f"select {items} from {SOURCE} as s{where}")
    if write.table.partition_by:
        # One file for each partition value, not one for each value and task.
        frame = frame.repartition(*[identifier(p, "spark") for p in write.table.partition_by])
    frame.write.format("delta").mode("append").save(write.table.path)


def _delta_extent(session: Any, write: Write, statement: Merge) -> Any:
    """Return the delta's number of rows and its partitions."""
    items = ["count(*) as _count"]
    for index, name in enumerate(statement.prune.partitions):
        column = identifier(name, "spark")
        items.append(f"sort_array(collect_set(cast({column} as string))) as _values_{index}")
        items.append(f"count_if({column} is null) as _nulls_{index}")
    return session.sql(f"select {', '.join(items)} from {SOURCE}").first()


def _literals(session: Any, write: Write, statement: Merge, found: Any) -> list[str]:
    """Return the literals that prune the target, from the delta's own rows."""
    kinds = {c.name: c.type for c in write.table.columns}
    literals = []
    for index, name in enumerate(statement.prune.partitions):
        values = found[f"_values_{index}"]
        if len(values) <= MOST_LITERALS:
            listed = ", ".join(literal(v, kinds[name]) for v in values)
            column = f"t.{identifier(name, 'spark')}"
            tests = [f"{column} in ({listed})"] if values else []
            tests += [f"{column} is null"] if found[f"_nulls_{index}"] else []
            literals.append(f"({' or '.join(tests)})")
    for key, group in statement.prune.ranges:
        literals.extend(_ranges(session, key, group, kinds[key]))
    return literals


def _target_rows(table: Any, statement: Merge, found: Any) -> int:
    """Return the number of rows in the partitions that a MERGE will open."""
    names = list(enumerate(statement.prune.partitions))

    def can_match(file: dict[str, Any]) -> bool:
        # Spark's text has a time without its zone; both have seconds.
        values = [(file.get(f"partition.{name}"), found[f"_values_{index}"]) for index, name in names]
        return all(value is None or str(value)[:19] in listed for value, listed in values)

    return rows_in(file for file in delta_table.files_at(table) if can_match(file))


def _ranges(session: Any, key: str, group: str, kind: str) -> list[str]:
    """Return the ranges of a key that has no partition column, one for each group: statistics then skip files."""
    k, g = identifier(key, "spark"), identifier(group, "spark")
    bounds = f"cast(min({k}) as string) as low, cast(max({k}) as string) as high"
    rows = session.sql(f"select {bounds} from {SOURCE} group by {g}").collect()
    if len(rows) > MOST_LITERALS or any(row["low"] is None for row in rows):
        return []
    tests = [f"t.{k} between {literal(row['low'], kind)} and {literal(row['high'], kind)}" for row in rows]
    return [f"({' or '.join(tests)})"]


def literal(text: str, kind: str) -> str:
    """Return a value's text as a literal of its type.

    >>> literal("3", "int"), literal("2026-01-01", "date")
    ('3', "date '2026-01-01'")
    """
    if kind in ("int", "bigint", "smallint", "tinyint", "boolean"):
        return text
    if kind in ("date", "timestamp"):
        return f"{kind} {string(text, 'spark')}"
    return string(text, "spark") if kind == "string" else f"cast({string(text, 'spark')} as {kind})"


def merge_text(write: Write, statement: Merge, literals: list[str]) -> str:
    """Return the statement."""
    path = identifier(write.table.path, "spark")
    lines = [
        f"merge into delta.{path} as t using {SOURCE} as s on {' and '.join([*same(statement, 'spark'), *literals])}"
    ]
    if statement.delete_when:
        lines.append(f"when matched and {statement.delete_when} then delete")
    sets = ", ".join(f"{identifier(c, 'spark')} = {e}" for c, e in statement.update if c not in statement.key)
    if sets:
        condition = f" and {statement.update_when}" if statement.update_when else ""
        lines.append(f"when matched{condition} then update set {sets}")
    condition = f" and {statement.insert_when}" if statement.insert_when else ""
    columns = ", ".join(identifier(c, "spark") for c, _ in statement.insert)
    values = ", ".join(e for _, e in statement.insert)
    lines.append(f"when not matched{condition} then insert ({columns}) values ({values})")
    return "\n".join(lines)
