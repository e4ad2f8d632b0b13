"""The checks that a project's files declare, with the ids that their results have. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sqlrun.expectations.validate import of_model
from sqlrun.expectations.values import columns_of
from sqlrun.incremental.compile import Compiled
from sqlrun.plan.values import Workspace
from sqlrun.project import CRITICAL, FAIL, WARN, WARNING, Expectation

# Types of results that `check/` gives.
FRESHNESS, MAX_QUARANTINED = "freshness", "max_quarantined"


def of(workspace: Workspace, model: Compiled) -> Iterator[tuple[Expectation, tuple[str, ...]]]:
    """Yield the checks of a model with the columns that each one's result names.

    Results of checks that no file declares, such as anomalies of measures, belong to none of them.
    """
    contract, suite = model.query.rendered.model, workspace.suites.get(model.name)
    for check in of_model(contract, suite):
        yield check, columns_of(check)
    if contract.freshness is not None:
        columns: tuple[str, ...] = (contract.event_time,)
        severity = WARNING if contract.freshness.error_after is None else CRITICAL
        yield Expectation(FRESHNESS, {"columns": list(columns)}, severity, WARN, "", contract.freshness.place), columns
    if suite is not None and suite.max_quarantined is not None and model.source is not None:
        limit = suite.max_quarantined
        yield Expectation(MAX_QUARANTINED, {"max": limit.text}, CRITICAL, FAIL, "", limit.place), ()
