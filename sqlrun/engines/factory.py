"""A profile's engine by name. Shell: the engines, imported on demand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from sqlrun.engine_api import Catalog, Dialect, Engine
from sqlrun.engines.spark import object_store
from sqlrun.project import Profile
from sqlrun.runtime import packages
from sqlrun.storage import urls

NOTHING: Mapping[str, str] = MappingProxyType({})
# For `auto`, the dialect of the engine that maintains small changes.
DIALECTS: dict[str, Dialect] = {"spark": "spark", "duckdb": "duckdb", "auto": "duckdb"}


def dialect_of(profile: Profile, model: str, spark_only_models: Mapping[str, str]) -> Dialect:
    """Return the SQL dialect that a model of a project runs in; `spark_only_models`: models that run only on Spark."""
    return "spark" if profile.engine == "auto" and model in spark_only_models else DIALECTS[profile.engine]


def engine_of(profile: Profile, spark_only_models: Mapping[str, str] = NOTHING) -> Engine:
    """Return a profile's engine, which starts at its first use.

    `spark_only_models`: the models that run only on Spark, each with the reason. Raises: UsageError (SR133) without the
    packages of Spark.
    """
    settings, own_commits = settings_of(profile), profile.delta_writer == "sqlrun"
    if profile.engine != "duckdb":
        packages.require(f"`engine: {profile.engine}`", "spark")
    if profile.engine == "auto":
        from sqlrun.engines.auto import AutoEngine

        return AutoEngine(settings, spark_only_models, profile.landing or "duckdb", own_commits)
    if profile.engine == "duckdb":
        from sqlrun.engines.duckdb.engine import DuckDBEngine

        return DuckDBEngine(settings, own_commits)
    from sqlrun.engines.spark.engine import SparkEngine

    return SparkEngine(settings, own_commits)


def catalog_of(profile: Profile, engine: Engine) -> Catalog | None:
    """Return the catalog that a profile names, reached by the profile's engine; None if it names none."""
    if not profile.catalog:
        return None
    from sqlrun.engines.spark.engine import SparkEngine

    assert isinstance(engine, SparkEngine), "a profile with a catalog has another engine"
    return engine.catalog(profile.catalog)


def settings_of(profile: Profile) -> dict[str, str]:
    """Return a profile's settings for its engine.

    Those of Spark name the connectors that its connections and its warehouse need, and say how to reach a warehouse in
    S3; a server of Spark Connect knows that itself.
    """
    settings = dict(profile.settings)
    if profile.engine == "duckdb":
        return settings
    in_s3 = urls.kind_of(profile.warehouse) == "s3"
    needed = [*(["kafka"] if profile.connections else []), *(["s3"] if in_s3 else [])]
    if needed:
        settings.setdefault("spark.sqlrun.connectors", ",".join(needed))
    if in_s3 and "spark.remote" not in settings:
        settings = {**object_store.settings(profile.storage, os.environ), **settings}
    return settings


def refused(profile: Profile) -> dict[str, str]:
    """Return the settings of a profile that DuckDB rejects, each with the reason; Spark accepts any name.

    An engine reports other problems with its settings at its start.
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
