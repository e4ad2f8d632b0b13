"""Compare published tables with their own queries run in full. Shell: DuckDB, Delta files.

A model is compared with its full query over the inputs at the versions, and the time, that its last tick read. If
every model equals its query, the marts equal the full computation over all landed rows, by induction over the graph.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlrun.engine_api import Dialect, Relation, StoredColumn
from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled, whole_query
from sqlrun.incremental.script import Moment
from sqlrun.maintain import row_hash, source_versions
from sqlrun.operations import compared
from sqlrun.parse import spark_only
from sqlrun.plan.diff import is_edited
from sqlrun.plan.plan import tick_plan
from sqlrun.plan.values import Workspace
from sqlrun.publish.environment_paths import fingerprint_of
from sqlrun.publish.reader import query, relation
from sqlrun.publish.table_state import Published, TableState, is_source
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import identifier, type_name

# Number of parts that hashes of keys are divided into.
PARTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One table: number of rows, of wrong rows (`-`: they should not be there) and of missing rows (`+`).

    `sampled`: only rows of some keys were compared and counted. `scope`: what holds of a history if it is right; "" for
    another table, which equals its query. `uncompared`: what of the history wasn't compared.
    """

    model: str
    rows: int
    wrong: int
    missing: int
    samples: tuple[dict[str, Any], ...]
    seconds: float
    sampled: bool = False
    scope: str = ""
    uncompared: str = ""

    @property
    def ok(self) -> bool:
        """Return whether table and query agree row for row."""
        return not self.wrong and not self.missing


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of keys: its percentage, and a seed that selects other keys."""

    percent: float
    seed: int

    def condition(self, keys: Iterable[StoredColumn], dialect: Dialect) -> str:
        """Return the condition that a row's key is in the sample.

        >>> Sample(5, 7).condition([StoredColumn("n", "bigint")], "duckdb")[-19:]
        ' % 1000000 < 50000)'
        """
        number = row_hash.number(keys, dialect, f"{self.seed}:")
        return f"({number} % {PARTS} < {round(self.percent / 100 * PARTS)})"


def verify(
    workspace: Workspace,
    warehouse: str,
    published: Published,
    names: tuple[str, ...],
    samples: int,
    some: Sample | None = None,
) -> Iterator[Verdict]:
    """Compare the named models' tables with their queries, in graph order; landing tables are taken as given.

    `some`: compare only rows of these keys if a table has a grain; compare other tables in full.

    A model whose input was rebuilt since, as by `--full-refresh`, is compared over the input that it has read.

    Raises: UsageError if a model was edited since the tick, because its table then answers another query.
    """
    _require_duckdb(workspace, names)
    plan = tick_plan(workspace, warehouse, published, published.tick, published.as_of, names, False)
    for model in plan.models:
        if model.source is not None:
            continue
        state = published.tables.get(model.name)
        if state is None:
            raise UsageError(f"tick {published.tick} has no table `{model.name}`. {_instead(model)}")
        if fingerprint_of(state.path) != workspace.prints[model.name]:
            raise UsageError(_edited(workspace, published, model))
        yield _compared(workspace, warehouse, published, model, state, samples, some)


def _edited(workspace: Workspace, published: Published, model: Compiled) -> str:
    """Return a message if the model, or a model that it reads, was edited since its table was built; else ""."""
    own = is_edited(workspace, model, published.tables)
    what = "was edited" if own else "depends on an edited model"
    if own and set(model.query.rendered.refs) & set(workspace.views):
        what = "or a view that it reads was edited"
    return (
        f"{model.name} {what} since tick {published.tick}, so its table can't be compared with the current query. "
        f"{_instead(model)}"
    )


def _instead(model: Compiled) -> str:
    """Return what to do about a table that the tick lacks, or whose query was edited: a build adds a newer tick."""
    return f"Run `sqlrun build` and verify the new tick, or leave the model out: --exclude {model.name}"


def _require_duckdb(workspace: Workspace, names: tuple[str, ...]) -> None:
    queries = [m.query for m in workspace.models if m.source is None and (m.name in names or m.is_view)]
    other = spark_only.problems(queries, workspace.project.functions)
    if other:
        raise UsageError(
            f"verify runs on DuckDB: {other[0].place}  {other[0].message}. Exclude the model with --exclude."
        )


def _compared(
    workspace: Workspace,
    warehouse: str,
    published: Published,
    model: Compiled,
    state: TableState,
    samples: int,
    some: Sample | None,
) -> Verdict:
    started = time.perf_counter()
    part, kinds = compared.of(model, state), dict(state.columns)
    columns = part.columns
    # DuckDB pushes the condition down to the columns that the keys are computed from.
    sample = (
        [some.condition([StoredColumn(key, kinds[key]) for key in part.key], "duckdb")] if some and part.key else []
    )
    surplus = " where false" if part.has_surplus else ""
    where, held = (f" where {' and '.join(tests)}" if tests else "" for tests in (sample, [*part.current, *sample]))
    queries = {m.name: m.query for m in workspace.models}
    moment = Moment(state.as_of, None)
    whole = whole_query(queries, model.name, workspace.views, moment, "duckdb")
    names = [identifier(column, "duckdb") for column, _ in columns]
    items = ", ".join(
        f"cast({name} as {type_name(kind, 'duckdb')}) as {name}" for name, (_, kind) in zip(names, columns, strict=True)
    )
    relations = (relation(warehouse, model.name, state, "kept"), *_inputs(workspace, warehouse, published, model))
    # Both directions, as bags: this distinguishes surplus from missing rows, and finds duplicates.
    text = f"""
        with whole as materialized (select * from (select {items} from ({whole})){where}),
        held as (select {", ".join(names)} from kept{held}),
        wrong as (select * from held{surplus} except all select * from whole),
        missing as (select * from whole except all select * from held),
        counted as (
            select
                (select count(*) from held) as _rows,
                (select count(*) from wrong) as _wrong,
                (select count(*) from missing) as _missing,
                {part.counts("".join(sample))}
        ),
        shown as (
            (select '-' as _change, * from wrong limit {samples})
            union all
            (select '+' as _change, * from missing limit {samples})
        )
        select * from counted left join shown on true
    """
    rows = arrow_rows.plain(query(text, relations))
    counts = rows[0]
    shown = tuple(
        {"change": row["_change"], **{name: row[name] for name, _ in columns}} for row in rows if row["_change"]
    )
    seconds = time.perf_counter() - started
    wrong, missing = counts["_wrong"], counts["_missing"]
    more = part.scope, part.uncompared(counts)
    return Verdict(model.name, counts["_rows"], wrong, missing, shown, seconds, bool(sample), *more)


def _source(workspace: Workspace, name: str, path: str, version: int) -> Relation:
    """Return a table that others write at the version that a model has read.

    Raises: UsageError if that version can't be read any more.
    """
    source = workspace.source(name)
    assert source is not None, "a model of another meaning isn't compared"
    folder = source_versions.folder_of(workspace.project.root, source)
    if why := source_versions.why_unreadable(folder, path, version):
        raise UsageError(
            f"source {source.group}.{source.name} can't be read at version {version}, which the tick has read: {why}. "
            "Run `sqlrun build`, then verify the new tick."
        )
    columns = tuple(StoredColumn(c.name, c.type) for c in source.columns)
    return Relation(f"{name}__new", folder, columns, "snapshot", version=version)


def _inputs(workspace: Workspace, warehouse: str, published: Published, model: Compiled) -> Iterator[Relation]:
    """Return the model's inputs at the versions that its tables were computed from."""
    hidden = {stage.name for stage in model.stages}
    seen: set[str] = set()
    for stage in model.stages:
        for name, (path, version) in published.tables[stage.name].inputs.items():
            if name not in hidden and name not in seen:
                seen.add(name)
                if is_source(path):
                    yield _source(workspace, name, path, version)
                    continue
                state = replace(published.tables[name], path=path, version=version)
                yield relation(warehouse, name, state, f"{name}__new")
