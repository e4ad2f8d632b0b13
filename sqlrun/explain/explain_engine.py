"""What `explain` and `plan` say of the engine with `engine: auto`, before a tick. Shell: receipts, Delta files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlrun.engines import auto, checkpoint_files
from sqlrun.explain.explain import EXAMPLE
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.maintain import engine_selection
from sqlrun.plan import engine_cost
from sqlrun.plan.engine_cost import Chosen, Past, Work
from sqlrun.plan.plan import TickPlan
from sqlrun.plan.strategy_cost import FEW, USUAL
from sqlrun.project import Profile
from sqlrun.system_tables import receipts

# Beside the few rows of an example: as many as a backfill or a rebuild brings.
LARGE = 1_000_000


def of_model(model: Compiled, target: Profile, alone: Mapping[str, str]) -> dict[str, str]:
    """Say of each table of a model which engine would take in few changed rows, and many; nothing without a choice."""
    if target.engine != "auto":
        return {}
    past = receipts.past(target.warehouse)
    return {stage.name: _of_stage(model, stage, target, alone, past) for stage in model.stages}


def _of_stage(model: Compiled, stage: Stage, target: Profile, alone: Mapping[str, str], past: tuple[Past, ...]) -> str:
    if model.name in alone:
        return f"spark: {alone[model.name]}"
    if stage.method == "land":
        return f"{_lands(target)}, if it is a new table; else the one that began it"
    small, large = (_predicted(stage, changed, past) for changed in (EXAMPLE, LARGE))
    least, most = sorted((large.duckdb, large.spark))
    other = "spark" if large.engine == "duckdb" else "duckdb"
    start = ", Spark's start included"
    return (
        f"{small.engine} for {EXAMPLE:,} changed rows: about {small.duckdb:.1f} s; "
        f"{large.engine} for {LARGE:,}: about {least:.0f} s, {other} about {most:.0f} s{start}; "
        f"by {engine_cost.basis('duckdb', stage.name, past)}, each tick anew"
    )


def _predicted(stage: Stage, changed: int, past: tuple[Past, ...]) -> Chosen:
    """Predict a change; what is too small to be weighed is DuckDB's, as in a tick."""
    rows = round(changed * max(USUAL[stage.method], 1.0))
    found = engine_cost.choose(Work(stage.name, changed, rows), past, None, spark_is_up=False)
    return replace(found, engine="duckdb") if rows <= FEW else found


def _lands(target: Profile) -> str:
    return target.landing or engine_selection.LANDS


def of_plan(plan: TickPlan, names: Iterable[str], target: Profile, alone: Mapping[str, str]) -> dict[str, str]:
    """Say of models that are built anew which engine does it, as far as it is known; nothing without a choice."""
    if target.engine != "auto":
        return {}
    models, past = {m.name: m for m in plan.models}, receipts.past(target.warehouse, plan.env)
    found = {}
    for model in (models[name] for name in names if name in models):
        if model.name in alone:
            found[model.name] = f"spark, as {alone[model.name]}"
        elif model.source is not None:
            began = engine_selection.began(
                f"{target.warehouse}/{checkpoint_files.checkpoint_of(plan.tables[model.name].path)}"
            )
            found[model.name] = began or _lands(target)
        else:
            text = _of_build(plan, model, target, past)
            found |= {model.name: text} if text else {}
    return found


def _of_build(plan: TickPlan, model: Compiled, target: Profile, past: tuple[Past, ...]) -> str:
    """Predict the engine that builds a model's own table; "" where its inputs have yet to be made."""
    published = plan.published.tables if plan.published else {}
    if any(name not in published for name in model.own.inputs):
        return ""
    held = [
        engine_selection.size(f"{target.warehouse}/{published[n].path}", published[n].version) for n in model.own.inputs
    ]
    work = Work(model.name, 0, sum(r for r, _ in held), sum(b for _, b in held), whole=True)
    memory = auto.size_of(target.settings.get("memory_limit", ""))
    found = engine_cost.choose(work, past, memory, spark_is_up=False)
    return f"{found.engine}, as {found.why}" if found.why else found.engine
