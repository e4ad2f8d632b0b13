"""What `explain` and `plan` say of the engine with `engine: auto`, before a tick. Shell: receipts, Delta files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlrun import engine_choice, landed, receipts, turns
from sqlrun.costs import USUAL
from sqlrun.engine_choice import Past, Work
from sqlrun.explain import EXAMPLE
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.model import Profile
from sqlrun.plan import TickPlan


def of_model(model: Compiled, target: Profile, alone: Mapping[str, str]) -> dict[str, str]:
    """Say of each table of a model which engine would take in a few changed rows, and why; nothing without a choice."""
    if target.engine != "auto":
        return {}
    past = receipts.past(target.warehouse)
    return {stage.name: _of_stage(model, stage, target, alone, past) for stage in model.stages}


def _of_stage(model: Compiled, stage: Stage, target: Profile, alone: Mapping[str, str], past: tuple[Past, ...]) -> str:
    if model.name in alone:
        return f"spark: {alone[model.name]}"
    if stage.method == "land":
        return f"{_lands(target)}, if it is a new table; else the one that began it"
    rows = round(EXAMPLE * max(USUAL[stage.method], 1.0))
    found = engine_choice.choose(Work(stage.name, EXAMPLE, rows), past, None, spark_is_up=False)
    other, seconds = ("spark", found.spark) if found.engine == "duckdb" else ("duckdb", found.duckdb)
    best = min(found.duckdb, found.spark)
    start = ", its start included" if other == "spark" else ""
    return (
        f"{found.engine} for {EXAMPLE:,} changed rows: about {best:.1f} s, {other} about {seconds:.1f} s{start}; "
        "each tick chooses anew"
    )


def _lands(target: Profile) -> str:
    return target.landing or turns.LANDS


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
            began = turns.began(f"{target.warehouse}/{landed.checkpoint_of(plan.tables[model.name].path)}")
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
    held = [turns.size(f"{target.warehouse}/{published[n].path}", published[n].version) for n in model.own.inputs]
    work = Work(model.name, 0, sum(r for r, _ in held), sum(b for _, b in held), whole=True)
    memory = engine_choice.size_of(target.settings.get("memory_limit", ""))
    found = engine_choice.choose(work, past, memory, spark_is_up=False)
    return f"{found.engine}, as {found.why}" if found.why else found.engine
