"""Edited rules of a landing model: its table may stay unless a landed row breaks them. Shell: the engine.

A line is validated once, when it lands or is replayed. So relaxed rules leave the table as it is, and pending lines can
be replayed. A rule that landed rows break would give one table two meanings, so all lines land from scratch.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlrun.engine_api import Engine, Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.heads import Heads
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land.drift_query import speaking
from sqlrun.plan.values import TablePlan, TickPlan, Workspace
from sqlrun.runtime.text_table import counted


def broken(workspace: Workspace, plan: TickPlan, reader: Engine, heads: Heads) -> dict[str, str]:
    """Return the landing models of a plan whose landed rows break the current rules, with the reason.

    Only edited rules, and rows of ticks that were never published, are checked.
    """
    found = {}
    for model in plan.models:
        table = plan.tables[model.name]
        head = heads.of(table.spec.path)
        if model.source is None or table.shared or not head:
            continue
        count = _rows(workspace, model, table, head, reader)
        if count:
            verb = "breaks" if count == 1 else "break"
            found[model.name] = f"{counted(count, 'landed row')} {verb} a rule that was edited"
    return found


def _rows(workspace: Workspace, model: Compiled, table: TablePlan, head: int, reader: Engine) -> int:
    """Return the number of landed rows that the current rules would quarantine.

    With the rules of the published tick, only later commits are read: a build that lands ahead has some in each tick.
    """
    test = landing_query.breaks(model.own, workspace.rules.get(model.name, ()), "duckdb")
    known, path = table.state, table.spec.path
    held, number = Relation("held", path, table.public, "new", version=head, where=table.where), "count(*)"
    if known is not None and known.content == workspace.rules_print(model):
        commits = delta_table.effective_commits(path, known.version, head)
        held, number = (
            Relation("held", path, table.public, "changes", commits=commits, where=table.where),
            "sum(_weight)",
        )
        test = test if commits else ""
    if not test:
        return 0
    (row,) = speaking(reader).query(f"select {number} as n from held where {test}", (held,)).to_pylist()
    return int(row["n"] or 0)


def message(workspace: Workspace, model: Compiled, table: TablePlan, waiting: Callable[[], int]) -> str:
    """Return the warning that quarantined lines were validated by other rules; "" if there are none."""
    if table.state is None or table.state.content in ("", workspace.rules_print(model)):
        return ""
    lines = waiting()
    if not lines:
        return ""
    verb = "is" if lines == 1 else "are"
    return (
        f"{model.name}: its rules were edited, and {counted(lines, 'line')} {verb} in quarantine. The new rules apply "
        f"to lines that land from now on. To evaluate the others again: sqlrun quarantine replay {model.name} --all"
    )
