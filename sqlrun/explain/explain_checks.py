"""Describe the checks of a model, the rows that each reads in a tick, and their cost, as values and text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlrun.expectations.catalogue import CATALOGUE, Scope
from sqlrun.expectations.validate import of_model, scope
from sqlrun.expectations.values import columns_of
from sqlrun.incremental.compile import Compiled
from sqlrun.plan.values import Workspace
from sqlrun.project import QUARANTINE, Expectation

SEES: Mapping[Scope, str] = {
    "row": "changed rows",
    "key": "rows that share the key of changed ones",
    "table": "the whole table",
    "schema": "names alone",
    "past": "the measures of past weeks",
}
LANDING = "each line before it lands"


def listed(workspace: Workspace, model: Compiled, rows: int | None) -> list[dict[str, Any]]:
    """Return the checks of a model; `rows` is its table's number of rows, None if unknown.

    A check that can't be evaluated on changes reads the whole table in every tick that changes it.
    """
    suite = workspace.suites.get(model.name)
    return [_described(check, rows) for check in of_model(model.query.rendered.model, suite)]


def _described(check: Expectation, rows: int | None) -> dict[str, Any]:
    kind = CATALOGUE.get(check.type)
    # A relationship isn't an expectation of Great Expectations: it reads the changes of two tables.
    sees: Scope = scope(check) if kind else "row"
    return {
        "check": check.result_type,
        "columns": list(columns_of(check)),
        "scope": sees,
        "severity": check.severity,
        "on_fail": check.on_fail,
        "place": str(check.place),
        "reads_whole_table": sees == "table",
        "rows": rows if sees == "table" else 0 if sees in ("schema", "past") else None,
        "why": _why(check) if sees == "table" else "",
    }


def _why(check: Expectation) -> str:
    """Return why a check needs more than the changed rows."""
    if check.name or check.type == "unexpected_rows_expectation":
        return "its query does more than pick rows by a condition on each"
    if check.type.startswith("expect_table_row_count"):
        return "it counts all rows"
    if "z_scores" in check.type or "outliers" in check.type:
        return "an outlier depends on all other values"
    return "it is a statistic of all values"


def written(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the checks as text: a summary, then checks that read the whole table, then the others."""
    if not checks:
        return ["checks     none"]
    counts = Counter(check["scope"] for check in checks)
    parts = [f"{counts[kind]:,} on {words}" for kind, words in SEES.items() if counts[kind]]
    lines = [f"checks     {', '.join(parts)}"]
    for check in sorted(checks, key=lambda check: not check["reads_whole_table"]):
        on = f"({', '.join(check['columns'])})" if check["columns"] else ""
        sees = LANDING if check["on_fail"] == QUARANTINE else SEES[check["scope"]]
        lines.append(f"           {check['check']}{on}: {sees}; {check['severity']}, {check['place']}")
        if check["reads_whole_table"]:
            cost = "every row" if check["rows"] is None else f"about {check['rows']:,} rows"
            why = f"can't be evaluated on changes, as {check['why']}"
            lines.append(f"             {why}: reads {cost} in each tick that changes the table")
    return lines
