"""The models and seeds that a command works on. Shell: the folder of `--state`, target/."""

from __future__ import annotations

from pathlib import Path

from sqlrun.graph.selectors import select as select_nodes
from sqlrun.pipeline import Prepared


def chosen(
    prepared: Prepared, select: tuple[str, ...], exclude: tuple[str, ...] = (), state: Path | None = None
) -> tuple[str, ...]:
    """Return the names of the selected models and seeds; `state` is a folder with artifacts of an earlier run.

    Raises: UsageError for a selector that matches nothing, and for artifacts that can't be read.
    """
    graph = prepared.graph
    if state is not None:
        from sqlrun.artifacts import state_files  # the manifest's modules, which few commands need

        root = Path(prepared.project.root)
        graph = state_files.compared(graph, prepared.workspace, (*select, *exclude), root, state)
    return select_nodes(graph, select, exclude)
