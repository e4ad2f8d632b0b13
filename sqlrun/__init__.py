"""sqlrun keeps the results of whole SQL queries up to date, tick by tick. Shell: Delta files, in `published` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlrun.publish.query import Result

from sqlrun.version import __version__ as __version__


def published(model: str, warehouse: str, tick: int | None = None, *, env: str = "") -> pa.Table:
    """Return a table at a published tick (the latest by default), without a JVM and without the project.

    `env` names an environment; the default is production. `MODEL__quarantine` returns the quarantined lines of a
    landing model. It may be called during a build.

    Raises: UsageError if the warehouse has no published tick, not this one, or no such table.
    """
    from sqlrun.publish.ledger import Ledger
    from sqlrun.publish.reader import find, query, tick_of

    # Reading doesn't need the project's name; only writes carry it.
    relation = find(tick_of(Ledger(warehouse, "", env), tick), warehouse, model)
    return query(
        f"select {', '.join(_quoted(c.name) for c in relation.columns)} from {_quoted(relation.name)}", [relation]
    )


def query(
    sql: str,
    warehouse: str | None = None,
    tick: int | None = None,
    *,
    env: str = "",
    project: str = ".",
    profile: str | None = None,
) -> Result:
    """Return the rows of a SELECT over the tables of one published tick (the latest by default).

    `sql` is Spark SQL, as in models; it names tables without `ref()`, and its clock is the tick's `as_of`. Without
    `warehouse` it is that of a profile of the project in the folder `project`. `.arrow()`, `.pandas()` and `.polars()`
    of the result return its rows. It may be called during a build.

    Raises: ProjectError with the query's mistakes; UsageError as `published` does; EngineError if DuckDB fails.
    """
    from sqlrun.publish.query import run

    if warehouse is None:
        from pathlib import Path

        from sqlrun.pipeline import published_ledger

        warehouse = published_ledger(Path(project), profile, env).warehouse
    return run(sql, warehouse, tick, env)


def views(warehouse: str, tick: int | None = None, *, env: str = "", dialect: str = "spark") -> list[str]:
    """Return SQL that creates a view of each table at a published tick (the latest by default).

    All of them show the same tick until they are created again, whatever is built meanwhile. `dialect`: `spark` creates
    temporary views; `duckdb` creates views over the tables' files, `duckdb-delta` over DuckDB's `delta_scan`, both in a
    schema with the project's name. Two forms follow the newest tick, by the folders whose paths stay: `spark-catalog`
    adds a catalog to a session of Spark, and `spark-tables` creates tables of another catalog.

    Raises: UsageError if the warehouse has no published tick, or not this one, or the dialect is unknown.
    """
    from sqlrun.publish.tick_views import of_tick

    return of_tick(warehouse, tick, env, dialect)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
