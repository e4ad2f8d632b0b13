"""The models and seeds that a command works on. Shell: the folder of `--state`, target/."""

from __future__ import annotations

from pathlib import Path

from sqlrun.graph.graph import Graph
from sqlrun.graph.selectors import select as select_nodes
from sqlrun.pipeline import Prepared


def chosen(
    prepared: Prepared, select: tuple[str, ...], exclude: tuple[str, ...] = (), state: Path | None = None
) -> tuple[str, ...]:
    """Return the names of the selected models and seeds; `state` is a folder with artifacts of an earlier run.

    Raises: UsageError for a selector that matches nothing, and for artifacts that can't be read.
    """
    return select_nodes(compared(prepared, select, exclude, state), select, exclude)


def compared(prepared: Prepared, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None) -> Graph:
    """Return the graph with the marks of an earlier run, if there is a folder with its artifacts.

    Raises: UsageError for artifacts that can't be read.
    """
    if state is None:
        return prepared.graph
    from sqlrun.artifacts import state_files  # the manifest's modules, which few commands need

    root = Path(prepared.project.root)
    return state_files.compared(prepared.graph, prepared.workspace, (*select, *exclude), root, state)
