"""All checks of a model over its whole published table. Shell: Delta files through DuckDB, Great Expectations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlrun.check.check import expectations_of
from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.relationships import over_whole
from sqlrun.engine_api import Engine
from sqlrun.errors import EngineError, Place
from sqlrun.events import CheckResult
from sqlrun.expectations.catalogue import CATALOGUE, QUERY, VOLUME
from sqlrun.expectations.values import columns_of
from sqlrun.incremental.compile import Compiled
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.plan.values import Workspace
from sqlrun.project import DEFAULTS, PII, Column, Expectation, Model
from sqlrun.publish.environment_paths import fingerprint_of
from sqlrun.publish.reader import relation
from sqlrun.publish.table_state import Published, TableState
from sqlrun.transpile.writer import identifier


@dataclass(frozen=True, slots=True)
class Checked:
    """Results of one table: its number of rows, and a result for each declared check.

    `edited`: the model's definition has changed; the checks ran on the tick's table.
    """

    model: str
    rows: int
    results: tuple[CheckResult, ...]
    edited: bool = False


def declared(workspace: Workspace, names: tuple[str, ...]) -> list[tuple[Compiled, tuple[Expectation, ...]]]:
    """Return the named models with checks on their tables, in graph order, without volume, which needs a tick."""
    found = [
        (model, tuple(one for one in expectations_of(workspace, model) if one.type != VOLUME))
        for model in workspace.tables
        if model.name in names
    ]
    return [(model, expectations) for model, expectations in found if expectations]


def check_table(
    engine: Engine,
    warehouse: str,
    published: Published,
    model: Compiled,
    expectations: tuple[Expectation, ...],
    meaning: str,
    check_timeout: float = DEFAULTS.check_timeout,
) -> Checked:
    """Evaluate a model's checks on all public rows of its table at a tick; a check that can't be evaluated is an error.

    `meaning`: the model's current hash. A check that takes longer than `check_timeout` seconds is an error.
    """
    contract, state = model.query.rendered.model, published.tables.get(model.name)
    if state is None:
        why = f"tick {published.tick} has no table `{model.name}`. Run `sqlrun build`"
        return Checked(model.name, 0, _errors(contract, expectations, why))
    edited = fingerprint_of(state.path) != meaning
    existing = {name for name, _ in state.columns}
    known = [e for e in expectations if _required_columns(e) <= existing]
    found = {}
    for expectation in expectations:
        if missing := sorted(_required_columns(expectation) - existing):
            since = f"{model.name} was edited since then. Run `sqlrun build`" if edited else "the table doesn't have it"
            why = f"the table of tick {published.tick} has no column {', '.join(missing)}: {since}"
            found[id(expectation)] = _errors(contract, (expectation,), why)[0]
    rows = 0
    if known:
        ours = [e for e in known if e.type != RELATIONSHIPS]
        rows, results = _evaluated(engine, warehouse, published, contract, state, ours, check_timeout)
        found |= {id(e): result for e, result in zip(ours, results, strict=True)}
        for one in known:
            if one.type == RELATIONSHIPS:
                found[id(one)] = over_whole(engine, warehouse, published, _guarded(contract, state), one, rows)
    return Checked(model.name, rows, tuple(found[id(e)] for e in expectations), edited)


def _evaluated(
    engine: Engine,
    warehouse: str,
    published: Published,
    contract: Model,
    state: TableState,
    expectations: list[Expectation],
    check_timeout: float,
) -> tuple[int, tuple[CheckResult, ...]]:
    """Read the rows for the checks once, and evaluate them; each scope is the whole table."""
    from sqlrun.check.evaluate import run_checks

    names = ", ".join(identifier(name, "duckdb") for name in _needed(contract, state, expectations))
    held = relation(warehouse, contract.name, state, "held")
    try:
        rows = engine.query(f"select {names} from held", (held,))
    except EngineError as error:
        return 0, _errors(contract, tuple(expectations), f"the table can't be read: {error}")
    contract, checks = _guarded(contract, state), tuple(expectations)
    # Ticks avoid Great Expectations where they can; here it evaluates everything itself.
    terms = Terms(published.as_of, check_timeout, evaluator="great_expectations")
    return rows.num_rows, run_checks(contract, checks, Rows(rows, whole=lambda: rows), terms)


def _errors(contract: Model, expectations: tuple[Expectation, ...], why: str) -> tuple[CheckResult, ...]:
    from sqlrun.check.evaluate import not_evaluated

    return tuple(not_evaluated(contract, expectation, why) for expectation in expectations)


def _required_columns(expectation: Expectation) -> set[str]:
    """Return the columns that an expectation requires."""
    return set(columns_of(expectation))


def _needed(contract: Model, state: TableState, expectations: list[Expectation]) -> Iterator[str]:
    """Return the columns to read: columns of the checks and of the grain, or all."""
    looked_at = {*contract.grain, *(name for e in expectations for name in _required_columns(e))}
    sees_all = any(
        e.type == QUERY or CATALOGUE[e.type].scope == "schema" or e.kwargs.get("row_condition") is not None
        for e in expectations
    )
    names = [name for name, _ in state.columns]
    some = [name for name in names if name in looked_at]
    # Counting rows needs a column, too.
    yield from names if sees_all else some or names[:1]


def _guarded(contract: Model, state: TableState) -> Model:
    """Treat columns that the contract no longer has as private, because their former tags are unknown."""
    place = Place(contract.contract_file)
    dropped = [(name, kind) for name, kind in state.columns if contract.column(name) is None]
    hidden = (Column(name, kind, "", place, tags=(PII,)) for name, kind in dropped)
    return replace(contract, columns=(*contract.columns, *hidden))
