"""Describe the engine of each table with `engine: auto`, before a tick. Shell: Delta files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlrun.engines import auto
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.maintain import engine_selection
from sqlrun.plan.engine_choice import MOST_SPILLED, too_large
from sqlrun.plan.values import TickPlan
from sqlrun.project import Profile
from sqlrun.sources import checkpoint


def of_model(model: Compiled, target: Profile, spark_only_models: Mapping[str, str]) -> dict[str, str]:
    """Return the rule by which an engine maintains each table of a model; {} if the profile names one engine."""
    if target.engine != "auto":
        return {}
    return {stage.name: _of_stage(model, stage, target, spark_only_models) for stage in model.stages}


def _of_stage(model: Compiled, stage: Stage, target: Profile, spark_only_models: Mapping[str, str]) -> str:
    if model.name in spark_only_models:
        return f"spark: {spark_only_models[model.name]}"
    if stage.method == "land":
        return f"{_lands(target)}, if it is a new table; else the one that created it"
    return f"duckdb; spark in a tick that works on more than {MOST_SPILLED:.0f} times DuckDB's memory_limit"


def _lands(target: Profile) -> str:
    return target.landing or engine_selection.LANDS


def of_plan(
    plan: TickPlan, names: Iterable[str], target: Profile, spark_only_models: Mapping[str, str]
) -> dict[str, str]:
    """Return the engine of each model that is rebuilt, if it is known; {} without a choice."""
    if target.engine != "auto":
        return {}
    models = {m.name: m for m in plan.models}
    found = {}
    for model in (models[name] for name in names if name in models):
        if model.name in spark_only_models:
            found[model.name] = f"spark, as {spark_only_models[model.name]}"
        elif model.source is not None:
            began = checkpoint.began(f"{target.warehouse}/{checkpoint.path_of(plan.tables[model.name].path)}")
            found[model.name] = began or _lands(target)
        else:
            text = _of_build(plan, model, target)
            found |= {model.name: text} if text else {}
    return found


def _of_build(plan: TickPlan, model: Compiled, target: Profile) -> str:
    """Return the engine that builds a model's own table; "" if its inputs don't exist yet."""
    published = plan.published.tables if plan.published else {}
    if any(name not in published for name in model.own.inputs):
        return ""
    sizes = [
        engine_selection.size(f"{target.warehouse}/{published[n].path}", published[n].version) for n in model.own.inputs
    ]
    why = too_large(sum(volume for _, volume in sizes), auto.size_of(target.settings.get("memory_limit", "")))
    return f"spark, as {why}" if why else "duckdb"
