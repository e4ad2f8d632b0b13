"""Checks run on a tick's rows. Shell: Great Expectations (and pandas under it), DuckDB for custom SQL."""

from __future__ import annotations

import functools
import logging
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, cast

from sqlrun.check_columns import FLOAT, UNITS, Prepared, prepare
from sqlrun.check_queries import CHECK_SECONDS, OfAValue, kept, unexpected
from sqlrun.check_regexes import stoppable
from sqlrun.check_samples import bounded, masked, sample_rows, sampled_columns
from sqlrun.errors import SqlrunError
from sqlrun.events import CheckResult, CheckStatus
from sqlrun.expectation_catalogue import CATALOGUE, QUERY
from sqlrun.expectation_values import columns_of, identity, number, resolved
from sqlrun.expectations import scope
from sqlrun.model import Expectation, Model
from sqlrun.time_limit import OutOfTimeError, within

if TYPE_CHECKING:
    import pyarrow as pa

# Reports show all of them, the console fewer.
SAMPLES = 20
_HIDDEN = "the check raised an error; its text is hidden, a column is tagged pii"
# Great Expectations' registry, context and pandas' warnings filters are shared by the whole process.
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One evaluation before severity is looked at; success None is an error."""

    success: bool | None
    evaluated: int = 0
    unexpected: int = 0
    samples: tuple[str, ...] = ()
    message: str = ""
    seconds: float = 0.0
    raw: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """One expectation that goes to Great Expectations, under its number."""

    number: int
    expectation: Expectation
    prepared: Prepared

    @property
    def must_count(self) -> bool:
        """Whether rows may be unexpected although the check passes."""
        return number(self.expectation.kwargs.get("mostly"), 1.0) < 1.0


def run_checks(
    model: Model,
    expectations: tuple[Expectation, ...],
    rows: pa.Table,
    keyed: pa.Table | None,
    whole: Callable[[], pa.Table] | None,
    as_of: datetime,
    seconds: float = CHECK_SECONDS,
) -> tuple[CheckResult, ...]:
    """Evaluate expectations on the rows that each has to see; one result for each, in their order.

    One that takes longer than so many `seconds` is stopped, and is an error.

    `rows`: the changed rows as they are now. `keyed`: the table's rows that share a key with them (None: `rows`
    are enough). `whole`: gives the whole table, called once at most and only when a check needs it.
    """
    get_whole = functools.cache(whole) if whole else None
    outcomes: dict[int, _Outcome] = {}
    for (rows_of, condition), lot in _lots(expectations, keyed is not None, outcomes).items():
        tables = {"row": rows, "schema": rows, "key": keyed}
        table = tables.get(rows_of) if rows_of != "table" else get_whole and get_whole()
        try:
            if table is not None and condition is not None:
                table = kept(table, condition, as_of, seconds)
        except ValueError as error:
            outcomes |= dict.fromkeys(lot, _Outcome(None, message=f"row_condition: {_shown(model, error)}"))
            continue
        outcomes |= _lot(model, lot, table, rows_of, as_of, seconds)
    if set(outcomes) != set(range(len(expectations))):
        raise SqlrunError(f"{model.name}: {len(expectations)} checks declared, {len(outcomes)} evaluated")
    return tuple(_result(model, expectation, outcomes[index]) for index, expectation in enumerate(expectations))


def _lots(
    expectations: Sequence[Expectation], has_keyed: bool, outcomes: dict[int, _Outcome]
) -> dict[tuple[str, str | None], dict[int, Expectation]]:
    """Group expectations by the rows that they see; those of which that can't be said become outcomes at once."""
    lots: dict[tuple[str, str | None], dict[int, Expectation]] = {}
    for index, expectation in enumerate(expectations):
        try:
            sees = scope(expectation)
        except (KeyError, ValueError) as error:
            outcomes[index] = _Outcome(None, message=f"{expectation.type}: {_said(error)}")
            continue
        # Each run of Great Expectations has a price of its own: where the rows are the same, one is enough.
        sees = "row" if sees == "key" and not has_keyed else sees
        condition = expectation.kwargs.get("row_condition")
        key = (sees, None if condition is None else str(condition))
        lots.setdefault(key, {})[index] = expectation
    return lots


def _lot(
    model: Model,
    lot: Mapping[int, Expectation],
    table: pa.Table | None,
    rows_of: str,
    as_of: datetime,
    seconds: float,
) -> dict[int, _Outcome]:
    """Evaluate the expectations that look at the same rows."""
    if table is None:
        return dict.fromkeys(lot, _Outcome(None, message="not evaluated: the whole table wasn't given"))
    if rows_of in ("row", "key") and table.num_rows == 0:
        return dict.fromkeys(lot, _Outcome(True))
    outcomes: dict[int, _Outcome] = {}
    asked: list[_Asked] = []
    for index, expectation in lot.items():
        if expectation.type == QUERY:
            outcomes[index] = _custom(model, expectation, table, as_of, seconds)
            continue
        try:
            prepared = prepare(expectation.type, resolved(expectation.kwargs, as_of), table)
            prepared = stoppable(expectation.type, prepared, seconds)
            asked.append(_Asked(index, expectation, prepared))
        except Exception as error:  # Arrow's errors are of many classes; each is this check's error
            hidden = _private(model, expectation) and not isinstance(error, OutOfTimeError)
            text = _HIDDEN if hidden else _said(error)
            outcomes[index] = _Outcome(None, table.num_rows, message=text)
    return outcomes | _evaluated(model, asked, table, seconds)


def _custom(model: Model, expectation: Expectation, table: pa.Table, as_of: datetime, seconds: float) -> _Outcome:
    started = time.perf_counter()
    query = str(expectation.kwargs["unexpected_rows_query"])
    try:
        count, few = unexpected(table, query, as_of, SAMPLES, seconds)
    except ValueError as error:
        return _Outcome(None, table.num_rows, message=_shown(model, error))
    samples = tuple(masked(model, row, query) for row in few)
    took = time.perf_counter() - started
    return _Outcome(count == 0, table.num_rows, count, samples, _rows(count, table), took)


def _rows(count: int, table: pa.Table) -> str:
    return f"{count} unexpected of {table.num_rows} rows" if count else ""


def _evaluated(model: Model, asked: Sequence[_Asked], table: pa.Table, limit: float) -> dict[int, _Outcome]:
    """Ask for yes or no first, which is half the work; then for counts and places, of what failed alone."""
    if not asked:
        return {}
    started = time.perf_counter()
    with _LOCK:
        _batch_definition()  # importing it for the first time is no check's time
        frame = _frame(asked, table.num_rows)
        quick = _validated(frame, [item for item in asked if not item.must_count], "BOOLEAN_ONLY", limit)
        again = [item for item in asked if quick.get(item.number, False) is not True]
        again = [item for item in again if not isinstance(quick.get(item.number), str)]
        found = quick | _validated(frame, again, "SUMMARY", limit)
    seconds = (time.perf_counter() - started) / len(asked)
    return {item.number: _outcome(model, item, found[item.number], table, seconds) for item in asked}


# True: it passed. A text: it raised. A mapping: Great Expectations' result with its details.
_Said = bool | str | Mapping[str, Any]


def _outcome(model: Model, item: _Asked, said: _Said, table: pa.Table, seconds: float) -> _Outcome:
    expectation = item.expectation
    if said is True:
        return _Outcome(True, table.num_rows, seconds=seconds)
    names = columns_of(expectation, CATALOGUE[expectation.type].columns)
    private = _private(model, expectation)
    if not isinstance(said, Mapping):
        # An exception's text may quote a value.
        return _Outcome(None, table.num_rows, message=_HIDDEN if private else str(said), seconds=seconds)
    # A statistic's unexpected_count counts values, not rows.
    count = int(said.get("unexpected_count", 0)) if CATALOGUE[expectation.type].counts_rows else 0
    if count:
        places = said.get("partial_unexpected_index_list") or []
        few = sample_rows(table, [int(place) for place in places[:SAMPLES]])
        wanted = sampled_columns(model, names)
        samples = tuple(masked(model, row, "", wanted) for row in few)
        message = _rows(count, table)
    else:
        samples, observed = (), said.get("observed_value")
        if item.prepared.scale and observed is not None:
            observed = observed / 10**item.prepared.scale
        message = "observed ***" if private else f"observed {observed}"[:200]
    success = bool(said["success"])
    return _Outcome(success, table.num_rows, count, samples, message, seconds, bounded(said["raw"], hidden=private))


def not_evaluated(model: Model, expectation: Expectation, why: str) -> CheckResult:
    """Write down a check whose rows couldn't be looked at: an error, never a pass."""
    return _result(model, expectation, _Outcome(None, message=why))


def result_of(
    model: Model,
    expectation: Expectation,
    success: bool,
    evaluated: int,
    unexpected: int,
    samples: tuple[str, ...],
    message: str,
    seconds: float = 0.0,
) -> CheckResult:
    """Write down a check that was counted elsewhere."""
    return _result(model, expectation, _Outcome(success, evaluated, unexpected, samples, message, seconds))


def counted(
    model: Model, expectation: Expectation, evaluated: int, unexpected: int, samples: tuple[str, ...], seconds: float
) -> CheckResult:
    """Write down a check that an engine has counted: it passes where no row is unexpected."""
    message = f"{unexpected} unexpected of {evaluated} rows" if unexpected else ""
    return _result(model, expectation, _Outcome(not unexpected, evaluated, unexpected, samples, message, seconds))


def _result(model: Model, expectation: Expectation, outcome: _Outcome) -> CheckResult:
    kind = CATALOGUE.get(expectation.type)
    status: CheckStatus = "pass" if outcome.success else "error"
    if outcome.success is False:
        status = _failed(expectation)
    return CheckResult(
        model=model.name,
        type=expectation.name or expectation.type,
        columns=columns_of(expectation, kind.columns if kind else ("column",)),
        severity=expectation.severity,
        status=status,
        evaluated=outcome.evaluated,
        unexpected=outcome.unexpected,
        samples=outcome.samples,
        seconds=outcome.seconds,
        message=outcome.message,
        description=expectation.description,
        place=expectation.place,
        check_id=identity(model.name, expectation),
        raw=outcome.raw,
    )


def _failed(expectation: Expectation) -> CheckStatus:
    """Say what a failure is: `on_fail` decides, but of rules of quarantine, that `sqlrun check` looks at, severity."""
    held_back = expectation.on_fail == "quarantine" and expectation.severity == "critical"
    if held_back or expectation.on_fail == "fail":
        return "fail"
    return "info" if expectation.severity == "info" else "warn"


def _private(model: Model, expectation: Expectation) -> bool:
    """Tell whether a column that an expectation names is tagged pii."""
    names = columns_of(expectation, CATALOGUE[expectation.type].columns)
    return any("pii" in column.tags for column in model.columns if column.name in names)


def _shown(model: Model, error: ValueError) -> str:
    """Give the text of SQL's error, unless it may quote a value where the model has private ones; SQL sees them all."""
    private = isinstance(error, OfAValue) and any("pii" in column.tags for column in model.columns)
    return _HIDDEN if private else _said(error)


def _said(error: Exception) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)[:300]


@functools.cache
def _great_expectations() -> Any:
    """Import Great Expectations without what it does to the process: captured warnings, logging, progress bars."""
    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own imports' deprecations are no business of sqlrun's user
        import great_expectations

        if warnings.showwarning is not shown:
            logging.captureWarnings(False)
    # What it logs (a check it can't load, a metric that raised) comes back as results here.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL + 1)
    return great_expectations


@functools.cache
def _batch_definition() -> Any:
    """Make the one context of the process; its data come with each run."""
    gx = _great_expectations()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("sqlrun").add_dataframe_asset("changes")
    return asset.add_batch_definition_whole_dataframe("rows")


def _frame(asked: Sequence[_Asked], count: int) -> Any:
    import pandas

    arrays = {name: array for item in asked for name, array in item.prepared.columns.items()}
    if any(CATALOGUE[item.expectation.type].scope == "schema" for item in asked):
        count = 0
    series = {name: _series(name, array) for name, array in arrays.items()}
    return pandas.DataFrame(series, index=pandas.RangeIndex(count))


def _series(name: str, array: pa.Array) -> Any:
    """Convert one column: exact Python objects where numpy would blur or lose values, and NaN apart from NULL."""
    import pandas
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(array.type):
        return pandas.Series(array.to_pylist(), dtype=object)
    if name.startswith(UNITS):
        scale, exact = int(name[len(UNITS) :].split(":")[0]), Context(prec=80)
        found = [value if value is None else Decimal(value) for value in array.to_pylist()]
        units = [value if value is None else int(value.scaleb(scale, exact)) for value in found]
        return pandas.Series(units, dtype=object)
    keeps_nan = pa.types.is_floating(array.type) and not name.startswith(FLOAT)
    if keeps_nan and pc.any(pc.is_nan(array)).as_py():
        values = ["NaN" if value != value else value for value in array.to_pylist()]
        return pandas.Series(values, dtype=object)
    return array.to_pandas(integer_object_nulls=True)


def _validated(frame: Any, asked: Sequence[_Asked], form: str, limit: float) -> dict[int, _Said]:
    """Run Great Expectations; what can't be run together is run one by one, so that one culprit is named."""
    if not asked:
        return {}
    try:
        return within(limit, lambda: _run(frame, asked, form))
    except Exception as error:  # its validation errors, and pandas' own: this check's error, never a pass
        if len(asked) == 1:
            return {asked[0].number: _said(error)}
        return {key: said for item in asked for key, said in _validated(frame, [item], form, limit).items()}


def _run(frame: Any, asked: Sequence[_Asked], form: str) -> dict[int, _Said]:
    gx = _great_expectations()
    from great_expectations.validator.v1_validator import Validator

    batch_definition = _batch_definition()
    with warnings.catch_warnings():
        # pandas warns of groups in a regex, numpy of empty means: the result says what there is to say.
        for module in ("great_expectations", "pandas", "numpy"):
            warnings.filterwarnings("ignore", module=rf"{module}(\..*)?")
        suite = gx.ExpectationSuite(
            name="sqlrun",
            expectations=[
                {
                    "type": item.expectation.type,
                    "kwargs": {k: v for k, v in item.prepared.kwargs.items() if v is not None},
                    "meta": {"sqlrun": item.number},
                }
                for item in asked
            ],
        )
        if len(suite.expectations) != len(asked):
            raise SqlrunError(f"{len(asked)} checks declared, {len(suite.expectations)} loaded")
        # batch.validate() would load the batch a second time, and hash every value of it each time.
        validator = Validator(
            batch_definition,
            result_format={"result_format": form, "partial_unexpected_count": SAMPLES},
            batch_parameters={"dataframe": frame},
        )
        results: Any = validator.validate_expectation_suite(suite).results
    found = {item.expectation_config.meta["sqlrun"]: _read(item, form) for item in results}
    if set(found) != {item.number for item in asked} or len(results) != len(asked):
        raise SqlrunError(f"{len(asked)} checks declared, {len(found)} evaluated")
    return found


def _read(result: Any, form: str) -> _Said:
    """Read one result; exception_info is flat, or has one entry for each metric."""
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if isinstance(entry, Mapping) and entry.get("raised_exception"):
            return _said(Exception(entry.get("exception_message") or "it raised"))
    if result.success is None:
        return "Great Expectations gave no verdict"
    if form == "BOOLEAN_ONLY":
        return bool(result.success)
    own = result.to_json_dict()
    raw = {key: own.get(key) for key in ("success", "result", "exception_info")}
    return {**cast(Mapping[str, Any], result.result), "success": bool(result.success), "raw": raw}


def load() -> None:
    """Import Great Expectations and make what all its checks share, before any is asked for."""
    _batch_definition()
