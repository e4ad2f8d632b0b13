"""A profile's engine by name. Shell: the engines, imported when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlrun.engine_api import Dialect, Engine
from sqlrun.project import Profile

NOTHING: Mapping[str, str] = MappingProxyType({})
# Of `auto` that of the engine which small changes are maintained by.
DIALECTS: dict[str, Dialect] = {"spark": "spark", "duckdb": "duckdb", "auto": "duckdb"}


def dialect_of(profile: Profile, model: str, spark_only_models: Mapping[str, str]) -> Dialect:
    """Return which SQL a model of a project runs as; `spark_only_models`: models for Spark alone."""
    return "spark" if profile.engine == "auto" and model in spark_only_models else DIALECTS[profile.engine]


def engine_of(profile: Profile, spark_only_models: Mapping[str, str] = NOTHING) -> Engine:
    """Return a profile's engine, which starts when it is first used.

    `spark_only_models` are the models that run on Spark alone, each with why.
    """
    settings, own_commits = dict(profile.settings), profile.delta_writer == "sqlrun"
    if profile.engine == "auto":
        from sqlrun.engines.auto import AutoEngine

        return AutoEngine(settings, spark_only_models, profile.landing or "duckdb", own_commits)
    if profile.engine == "duckdb":
        from sqlrun.engines.duckdb.engine import DuckDBEngine

        return DuckDBEngine(settings, own_commits)
    from sqlrun.engines.spark.engine import SparkEngine

    return SparkEngine(settings, own_commits)


def refused(profile: Profile) -> dict[str, str]:
    """Return the settings of a profile that DuckDB doesn't take, and why; Spark takes any name.

    What else it says of its settings, it says when it starts.
    """
    if profile.engine == "spark" or not profile.settings:
        return {}
    from sqlrun.engines.auto import of_duckdb
    from sqlrun.engines.duckdb.engine import refusal

    settings = dict(profile.settings) if profile.engine == "duckdb" else of_duckdb(profile.settings)
    if not settings or not refusal(settings):
        return {}
    each = {key: refusal({key: value}) for key, value in settings.items()}
    return {key: why for key, why in each.items() if why}
