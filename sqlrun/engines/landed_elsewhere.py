"""A landing table whose files another engine has landed: left alone, or refused where files wait. Shell: files.

Each engine remembers in its own way which files it has landed. Maintaining may change engines from tick to tick;
landing may not, since what one remembers says nothing to the other.
"""

from __future__ import annotations

from pathlib import Path

from sqlrun.engine_api import Landing
from sqlrun.engines import checkpoint_files, source_files
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError


def nothing_waits(landing: Landing, engine: str) -> bool:
    """Tell that another engine lands this table and has landed all files that are there; False where none else does.

    Raises: EngineError where files wait for the other engine.
    """
    checkpoint = Path(landing.checkpoint)
    other, seen = "spark", set[str]()
    if engine == "duckdb" and (checkpoint / "metadata").exists() and not (checkpoint / "id").exists():
        # Spark ends its batches in their order, and forgets old ones.
        newest = max(checkpoint_files.numbers(checkpoint / "commits"), default=-1)
        seen = {name for name, _, batch in source_files.spark_log(checkpoint) if batch <= newest}
    elif engine == "spark" and (checkpoint / "id").exists() and not (checkpoint / "metadata").exists():
        other, seen = "duckdb", _planned(landing, checkpoint)
    else:
        return False
    waiting = sorted(name for name in source_files.listed(landing.source) if name not in seen)
    if not waiting:
        return True
    raise EngineError(
        f"{landing.table.name} was landed by the engine {other}, and {len(waiting)} of its source's files wait "
        f"({waiting[0]}): {engine} doesn't know what {other} has landed. Land them with a profile of that engine, or "
        f"land all files again: `sqlrun build --full-refresh --select {landing.table.name}+`.",
        model=landing.table.name,
    )


def _planned(landing: Landing, checkpoint: Path) -> set[str]:
    """Name the files of DuckDB's batches that the table holds."""
    app_id = f"{landing.app_id}:{(checkpoint / 'id').read_text().strip()}"
    held = delta_table.open_table(landing.table.path).transaction_version(app_id) or 0
    plans = checkpoint_files.plans(checkpoint).items()
    return {name for number, plan in plans if plan is not None and number <= held for name in plan["files"]}
