"""A profile's engine by name. Shell: the engines, imported when one is asked for."""

from __future__ import annotations

from sqlrun.engines.protocol import Dialect, Engine
from sqlrun.model import Profile

DIALECTS: dict[str, Dialect] = {"spark": "spark", "duckdb": "duckdb"}


def engine_of(profile: Profile) -> Engine:
    """Make the engine of a profile; it starts when it is first used."""
    settings = dict(profile.settings)
    if profile.engine == "duckdb":
        from sqlrun.engines.duckdb import DuckDBEngine

        return DuckDBEngine(settings)
    from sqlrun.engines.spark import SparkEngine

    return SparkEngine(settings)
