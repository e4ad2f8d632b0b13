"""Evidence on failed checks for the report: rule, SQL and past outcomes. Shell: Delta files.

It is read only for failed checks, so a tick in which all pass costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlrun.engines.factory import DIALECTS
from sqlrun.errors import EngineError
from sqlrun.events import CheckResult, TickResult
from sqlrun.expectations import failing_rows
from sqlrun.expectations.validate import from_contract
from sqlrun.expectations.values import identity
from sqlrun.outcome import read
from sqlrun.pipeline import Prepared
from sqlrun.plan.values import PUBLIC_ROWS
from sqlrun.project import Expectation, Model, Profile
from sqlrun.report.findings import Evidence
from sqlrun.report.trends import streak
from sqlrun.system_tables import check_results

# Number of ticks drawn beside a failure; `sqlrun history` shows more.
TICKS = 48


def declared(prepared: Prepared, names: Iterable[str] | None = None) -> dict[str, tuple[Model, Expectation]]:
    """Return the checks that contracts and suites declare, by id; of the named models, or all."""
    wanted = None if names is None else set(names)
    found: dict[str, tuple[Model, Expectation]] = {}
    for query in prepared.queries:
        if wanted is not None and query.name not in wanted:
            continue
        model, suite = query.rendered.model, prepared.workspace.suites.get(query.name)
        for each in (*from_contract(model), *(suite.expectations if suite else ())):
            found[identity(query.name, each)] = model, each
    return found


Rules = Mapping[str, tuple[Model, Expectation]]


def gather(prepared: Prepared, profile: Profile, env: str, result: TickResult, rules: Rules) -> dict[str, Evidence]:
    """Return the evidence on each check that did not pass, by id; {} if all passed."""
    bad = {check.check_id: check for check in result.checks if check.status.rank and check.check_id}
    if not bad:
        return {}
    tables = {stage.table: (stage.path, stage.version) for node in result.nodes for stage in node.stages}
    past = _past(profile.warehouse, env, result, bad)
    found = {}
    for key in bad:
        summary, ranks, shares = past.get(key, ("", (), ()))
        text, rule = "", ""
        if key in rules:
            model, expectation = rules[key]
            rule = json.dumps(expectation.kwargs, default=str, ensure_ascii=False)
            text = _query(prepared, profile, model, expectation, tables.get(model.name), result)
        found[key] = Evidence(rule, text, summary, ranks, shares)
    return found


def _query(
    prepared: Prepared,
    profile: Profile,
    model: Model,
    expectation: Expectation,
    place: tuple[str, int] | None,
    result: TickResult,
) -> str:
    if place is None or not place[0]:
        return ""
    engine = DIALECTS[profile.engine]
    path, root = f"{profile.warehouse}/{place[0]}", prepared.project.root.rstrip("/")
    shown = path.removeprefix(f"{root}/")
    where = PUBLIC_ROWS if prepared.workspace.model(model.name).source is not None else ""
    source = failing_rows.table(engine, shown, place[1])
    return failing_rows.query(expectation, model.columns, source, where, result.as_of, engine)


_Past = tuple[str, tuple[int | None, ...], tuple[float | None, ...]]


def _past(warehouse: str, env: str, result: TickResult, bad: Mapping[str, CheckResult]) -> dict[str, _Past]:
    """Return the outcomes of the checks in recent ticks, this one included; an unreadable table counts as empty."""
    if not result.tick:
        return {}
    since = max(1, result.tick - TICKS + 1)
    try:
        rows = check_results.recent(warehouse, env, since, bad)
    except EngineError:
        rows = []
    rows += [row for row in check_results.rows_of(result, result.as_of) if row["check_id"] in bad]
    first = min(row["tick"] for row in rows)
    found = {}
    for key in bad:
        ranks: list[int | None] = [None] * (result.tick - first + 1)
        shares: list[float | None] = [None] * len(ranks)
        for row in rows:
            if row["check_id"] == key and row["tick"] <= result.tick:
                place = row["tick"] - first
                ranks[place] = max(ranks[place] or 0, read(row["status"]).rank or 0)
                shares[place] = row["unexpected"] / row["evaluated"] if row["evaluated"] else 0.0
        found[key] = streak(first, ranks), tuple(ranks), tuple(shares)
    return found
