"""Select the engine that runs a table's statement in a tick. Shell: the engines, files.

If the profile names one engine, it is that one. With `engine: auto` DuckDB runs what it can compute as Spark would.
Spark runs what only Spark can do, and what is many times as large as DuckDB's memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlrun.engine_api import Engine
from sqlrun.engines.auto import AutoEngine
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, UnsuitedError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Tick
from sqlrun.maintain.tick_context import TickContext
from sqlrun.plan.engine_choice import too_large
from sqlrun.plan.strategy_cost import FEW, USUAL
from sqlrun.source_api import Pending
from sqlrun.sources import checkpoint

# Engine of new landing tables, unless set otherwise in the profile (decision 17).
LANDS = "duckdb"


@dataclass(frozen=True, slots=True)
class Selection:
    """An engine, and why it was selected if that is unexpected, else ""."""

    engine: Engine
    note: str = ""


def of_table(context: TickContext, stage: Stage, tick: Tick, changed: int) -> Selection:
    """Return the engine that maintains a table in this tick."""
    engine = context.engine
    if not isinstance(engine, AutoEngine):
        return Selection(engine)
    if stage.model in engine.spark_only_models:
        return Selection(engine.spark, f"Spark maintains {stage.name}: {engine.spark_only_models[stage.model]}")
    why = too_large(_volume(context, stage, tick, changed), engine.memory)
    if why:
        return Selection(engine.spark, f"Spark maintains {stage.name} in this tick: {why}")
    return Selection(engine.duckdb)


def _volume(context: TickContext, stage: Stage, tick: Tick, changed: int) -> int:
    """Return the bytes of files that the statement will read; 0, without a look at the tables, if there are few."""
    whole = tick.fresh or tick.whole or stage.method == "full"
    rows = round(changed * max(USUAL[stage.method], 1.0))
    if not whole and rows < FEW:
        return 0
    inputs, volume = _held(context, stage, changed)
    return volume if whole else round(volume * min(1.0, rows / max(inputs, 1)))


def _held(context: TickContext, stage: Stage, changed: int) -> tuple[int, int]:
    """Return the inputs' rows and bytes: before this tick, unless it changed most of them."""
    sizes = [size(*context.before(name)) for name in stage.inputs]
    if sum(rows for rows, _ in sizes) < 2 * changed:
        tables, states = context.plan.tables, context.states
        sizes = [size(tables[name].spec.path, states[name].version) for name in stage.inputs]
    return sum(rows for rows, _ in sizes), sum(volume for _, volume in sizes)


def size(path: str, version: int) -> tuple[int, int]:
    """Return a table's rows and bytes by its files' statistics."""
    files = delta_table.files_at(delta_table.open_table(path, version))
    return sum(int(f.get("num_records") or 0) for f in files), sum(int(f.get("size_bytes") or 0) for f in files)


def fall_back_to_spark(
    context: TickContext, selection: Selection, path: str, base: int, error: UnsuitedError
) -> Selection:
    """Return the selection of Spark for a table that DuckDB could not write.

    Raise the error again if there is no other engine, or if something was committed.
    """
    engine = context.engine
    if not isinstance(engine, AutoEngine) or selection.engine is not engine.duckdb or delta_table.head(path) != base:
        raise error
    return Selection(engine.spark, f"Spark maintains {error.model} in this tick: {error}")


def of_landing(context: TickContext, model: Compiled) -> Selection:
    """Return the engine that lands a model's source: the one that started it, since only it knows the landed files."""
    engine = context.engine
    if not isinstance(engine, AutoEngine):
        return Selection(engine)
    if model.name in engine.spark_only_models:
        return Selection(engine.spark, f"Spark lands {model.name}: {engine.spark_only_models[model.name]}")
    lands = checkpoint.began(_checkpoint(context, model)) or engine.lands
    return Selection(engine.spark if lands == "spark" else engine.duckdb)


def _checkpoint(context: TickContext, model: Compiled) -> str:
    return f"{context.warehouse}/{checkpoint.path_of(context.plan.tables[model.name].path)}"


def prestart_spark(context: TickContext) -> None:
    """Start Spark in the background if this tick is known to need it, before anything is written.

    Raises: EngineError if Java is missing.
    """
    engine = context.engine
    if not isinstance(engine, AutoEngine) or not _is_needed(context, engine, context.plan.models):
        return
    from sqlrun.engines.spark.session import java_problem

    problem = None if engine.spark_is_up else java_problem()
    if problem is not None:
        raise EngineError(problem)
    engine.warm()


def _is_needed(context: TickContext, engine: AutoEngine, models: Iterable[Compiled]) -> bool:
    """Return whether Spark has files to land, a table to build, or a table with changed inputs."""
    waiting = {m.name for m in models if m.source is not None and _waits(context, m)}
    if any(of_landing(context, m).engine is engine.spark for m in models if m.name in waiting):
        return True
    own = [m for m in models if m.source is None and m.name in engine.spark_only_models]
    if not own:
        return False
    fresh = any(context.plan.tables[stage.name].state is None for m in own for stage in m.stages)
    return fresh or bool(waiting) or any(_has_landed(context, m) for m in models if m.source is not None)


def _waits(context: TickContext, model: Compiled) -> bool:
    try:
        return bool(pending(context, model).parts)
    except (EngineError, OSError):
        return False  # landing reports the error


def _has_landed(context: TickContext, model: Compiled) -> bool:
    """Return whether a landing table has unpublished rows: landed ahead, or by a tick that failed."""
    table = context.plan.tables[model.name]
    head = delta_table.head(table.spec.path)
    return table.state is not None and head is not None and head > table.state.version


def pending(context: TickContext, model: Compiled) -> Pending:
    """Return the pending lines of a model's source."""
    reader = context.source_of(model)
    return reader.pending(checkpoint.landed(reader, _checkpoint(context, model)))
