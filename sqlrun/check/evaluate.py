"""Evaluation of checks on a tick's rows. Shell: Arrow, Great Expectations, DuckDB for custom SQL."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlrun.check import arrow_evaluator, great_expectations
from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.comparable_columns import prepare
from sqlrun.check.great_expectations import Asked
from sqlrun.check.great_expectations import message as message_of
from sqlrun.check.regex_guard import stoppable
from sqlrun.check.samples import SAMPLES, bounded, masked, sample_rows, sampled_columns
from sqlrun.check.sql_evaluator import OfAValue, kept, unexpected
from sqlrun.errors import SqlrunError
from sqlrun.events import CheckResult
from sqlrun.expectations.catalogue import CATALOGUE, QUERY
from sqlrun.expectations.validate import scope
from sqlrun.expectations.values import columns_of, identity, resolved
from sqlrun.outcome import Outcome, of_failure
from sqlrun.project import INFO, WARN, Expectation, Model
from sqlrun.runtime import packages, text_table
from sqlrun.runtime.time_limit import OutOfTimeError, within

if TYPE_CHECKING:
    import pyarrow as pa

_HIDDEN = "the check raised an error. Its text is hidden because a column has the tag pii"


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One evaluation, before its severity applies; success None is an error."""

    success: bool | None
    evaluated: int = 0
    unexpected: int = 0
    samples: tuple[str, ...] = ()
    message: str = ""
    seconds: float = 0.0
    raw: Mapping[str, object] | None = None
    evaluator: str = ""


def run_checks(
    model: Model,
    expectations: tuple[Expectation, ...],
    rows: Rows,
    terms: Terms,
) -> tuple[CheckResult, ...]:
    """Evaluate expectations on the rows that each of them needs; return one result for each, in their order."""
    get_whole = functools.cache(rows.whole) if rows.whole else None
    evaluations: dict[int, _Evaluation] = {}
    for (rows_of, condition), lot in _lots(expectations, rows.keyed is not None, evaluations).items():
        tables = {"row": rows.changed, "schema": rows.changed, "key": rows.keyed}
        table = tables.get(rows_of) if rows_of != "table" else get_whole and get_whole()
        try:
            if table is not None and condition is not None:
                table = kept(table, condition, terms.as_of, terms.check_timeout)
        except ValueError as error:
            evaluations |= dict.fromkeys(lot, _Evaluation(None, message=f"row_condition: {_error_text(model, error)}"))
            continue
        evaluations |= _lot(model, lot, table, rows_of, terms)
    if set(evaluations) != set(range(len(expectations))):
        raise SqlrunError(
            f"{model.name}: {len(evaluations)} of {text_table.counted(len(expectations), 'declared check')} evaluated"
        )
    return tuple(_result(model, expectation, evaluations[index]) for index, expectation in enumerate(expectations))


def _lots(
    expectations: Sequence[Expectation], has_keyed: bool, evaluations: dict[int, _Evaluation]
) -> dict[tuple[str, str | None], dict[int, Expectation]]:
    """Group expectations by the rows that they need; those without a known scope are errors at once."""
    lots: dict[tuple[str, str | None], dict[int, Expectation]] = {}
    for index, expectation in enumerate(expectations):
        try:
            sees = scope(expectation)
        except (KeyError, ValueError) as error:
            evaluations[index] = _Evaluation(None, message=f"{expectation.type}: {message_of(error)}")
            continue
        # Each run of Great Expectations has a fixed cost: run it once for the same rows.
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
    terms: Terms,
) -> dict[int, _Evaluation]:
    """Evaluate the expectations that need the same rows."""
    if table is None:
        return dict.fromkeys(lot, _Evaluation(None, message="not evaluated: the check needs the whole table"))
    if rows_of in ("row", "key") and table.num_rows == 0:
        return dict.fromkeys(lot, _Evaluation(True))
    evaluations: dict[int, _Evaluation] = {}
    asked: list[Asked] = []
    for index, expectation in lot.items():
        if expectation.type == QUERY:
            evaluations[index] = _custom(model, expectation, table, terms)
            continue
        try:
            kwargs = resolved(expectation.kwargs, terms.as_of)
            if terms.evaluator == "auto" and arrow_evaluator.none_unexpected(expectation.type, kwargs, table):
                evaluations[index] = _Evaluation(True, table.num_rows, evaluator="arrow")
                continue
            prepared = prepare(expectation.type, kwargs, table)
            prepared = stoppable(expectation.type, prepared, terms.check_timeout)
            asked.append(Asked(index, expectation, prepared))
        except Exception as error:  # Arrow's errors are of many classes; each is this check's error
            hidden = _private(model, expectation) and not isinstance(error, OutOfTimeError)
            text = _HIDDEN if hidden else message_of(error)
            evaluations[index] = _Evaluation(None, table.num_rows, message=text)
    return evaluations | _evaluated(model, asked, table, terms)


def _custom(model: Model, expectation: Expectation, table: pa.Table, terms: Terms) -> _Evaluation:
    started = time.perf_counter()
    query = str(expectation.kwargs["unexpected_rows_query"])
    try:
        count, few = unexpected(table, query, terms.as_of, SAMPLES, terms.check_timeout)
    except ValueError as error:
        return _Evaluation(None, table.num_rows, message=_error_text(model, error))
    samples = tuple(masked(model, row, query) for row in few)
    took = time.perf_counter() - started
    return _Evaluation(count == 0, table.num_rows, count, samples, _rows(count, table), took, evaluator="duckdb")


def _rows(count: int, table: pa.Table) -> str:
    return f"{count:,} of {text_table.counted(table.num_rows, 'row')} unexpected" if count else ""


def _evaluated(model: Model, asked: Sequence[Asked], table: pa.Table, terms: Terms) -> dict[int, _Evaluation]:
    """Count on the columns directly where possible; use Great Expectations for all other checks and for failures."""
    if not asked:
        return {}
    started = time.perf_counter()
    alone, counted = bool(packages.missing("gx")), dict[int, _Evaluation]()
    if alone or terms.evaluator == "auto":
        counted = _counted(model, asked, table, terms.check_timeout, alone=alone)
    rest = [item for item in asked if item.number not in counted]
    results = great_expectations.evaluated(rest, table.num_rows, terms.check_timeout) if rest else {}
    seconds = (time.perf_counter() - started) / len(asked)
    found = {item.number: _evaluation(model, item, results[item.number], table) for item in rest}
    return {key: replace(each, seconds=seconds) for key, each in (counted | found).items()}


def _counted(
    model: Model, asked: Sequence[Asked], table: pa.Table, check_timeout: float, *, alone: bool = False
) -> dict[int, _Evaluation]:
    """Evaluate checks that pass, and notes; Great Expectations finds the rows that break any other rule.

    `alone`: it isn't installed, so each check is evaluated here, or is an error.
    """
    evaluations = {}
    for item in asked:
        expectation = item.expectation
        count = partial(arrow_evaluator.count, expectation.type, item.prepared, SAMPLES, alone=alone)
        try:
            # A search in one text can't be interrupted, but a search in many texts can, between two of them.
            found = within(check_timeout, count) if "regex" in item.prepared.kwargs else count()
        except OutOfTimeError as error:
            evaluations[item.number] = _Evaluation(None, table.num_rows, message=message_of(error))
            continue
        except Exception as error:  # Arrow's errors are of many classes; Great Expectations evaluates the check instead
            if alone:
                text = _HIDDEN if _private(model, expectation) else message_of(error)
                evaluations[item.number] = _Evaluation(None, table.num_rows, message=text)
            continue
        if found is None:
            if alone:
                text = f"SR133 {packages.needs('a check with these arguments', 'gx')}. {packages.install('gx')}"
                evaluations[item.number] = _Evaluation(None, table.num_rows, message=text)
            continue
        success = found.passes(item.prepared.kwargs.get("mostly"))
        if success or alone or _is_note(expectation):
            samples = _samples(model, expectation, table, found.places)
            message = _rows(found.unexpected, table)
            evaluations[item.number] = _Evaluation(
                success, table.num_rows, found.unexpected, samples, message, evaluator="arrow"
            )
    return evaluations


def _is_note(expectation: Expectation) -> bool:
    return expectation.severity == INFO and expectation.on_fail == WARN


def _samples(model: Model, expectation: Expectation, table: pa.Table, places: Sequence[int]) -> tuple[str, ...]:
    names = columns_of(expectation)
    columns = sampled_columns(model, names)
    sampled = table.select([name for name in columns if name in table.column_names])
    return tuple(masked(model, row, "", columns) for row in sample_rows(sampled, places))


def _evaluation(model: Model, item: Asked, result: great_expectations.Said, table: pa.Table) -> _Evaluation:
    """Return the evaluation of a result of Great Expectations."""
    expectation, evaluator = item.expectation, "great_expectations"
    if result is True:
        return _Evaluation(True, table.num_rows, evaluator=evaluator)
    private = _private(model, expectation)
    if not isinstance(result, Mapping):
        # An exception's text may quote a value.
        return _Evaluation(None, table.num_rows, message=_HIDDEN if private else str(result), evaluator=evaluator)
    success, counts_rows = bool(result["success"]), CATALOGUE[expectation.type].counts_rows
    # A statistic's unexpected_count counts values, not rows.
    count = int(result.get("unexpected_count", 0)) if counts_rows else 0
    samples: tuple[str, ...] = ()
    if count:
        places = result.get("partial_unexpected_index_list") or []
        samples = _samples(model, expectation, table, [int(place) for place in places[:SAMPLES]])
        message = _rows(count, table)
    elif success and counts_rows:
        message = ""
    else:
        observed = result.get("observed_value")
        if item.prepared.scale and observed is not None:
            observed = observed / 10**item.prepared.scale
        message = "observed ***" if private else f"observed {observed}"[:200]
    raw = bounded(result["raw"], hidden=private)
    return _Evaluation(success, table.num_rows, count, samples, message, raw=raw, evaluator=evaluator)


def not_evaluated(model: Model, expectation: Expectation, why: str) -> CheckResult:
    """Return the result of a check whose rows couldn't be read: an error, never a pass."""
    return _result(model, expectation, _Evaluation(None, message=why))


def result_of(
    model: Model,
    expectation: Expectation,
    success: bool,
    evaluated: int,
    unexpected: int,
    samples: tuple[str, ...],
    message: str,
    seconds: float = 0.0,
    evaluator: str = "",
) -> CheckResult:
    """Return the result of a check that was counted elsewhere."""
    found = _Evaluation(
        success=success,
        evaluated=evaluated,
        unexpected=unexpected,
        samples=samples,
        message=message,
        seconds=seconds,
        raw=None,
        evaluator=evaluator,
    )
    return _result(model, expectation, found)


def counted(
    model: Model, expectation: Expectation, evaluated: int, unexpected: int, samples: tuple[str, ...], seconds: float
) -> CheckResult:
    """Return the result of a check that an engine has counted: it passes if no row is unexpected."""
    message = f"{unexpected:,} of {text_table.counted(evaluated, 'row')} unexpected" if unexpected else ""
    return result_of(model, expectation, not unexpected, evaluated, unexpected, samples, message, seconds, "duckdb")


def _result(model: Model, expectation: Expectation, found: _Evaluation) -> CheckResult:
    match found.success:
        case True:
            status = Outcome.PASS
        case False:
            status = of_failure(expectation)
        case None:
            status = Outcome.ERROR
    return CheckResult(
        model=model.name,
        type=expectation.result_type,
        columns=columns_of(expectation),
        severity=expectation.severity,
        status=status,
        evaluated=found.evaluated,
        unexpected=found.unexpected,
        samples=found.samples,
        seconds=found.seconds,
        message=found.message,
        description=expectation.description,
        place=expectation.place,
        check_id=identity(model.name, expectation),
        raw=found.raw,
        evaluator=found.evaluator,
    )


def _private(model: Model, expectation: Expectation) -> bool:
    """Return whether a column that an expectation names is tagged pii."""
    names = columns_of(expectation)
    return any(column.is_private for column in model.columns if column.name in names)


def _error_text(model: Model, error: ValueError) -> str:
    """Return the text of an SQL error, unless it may quote a private value: SQL has access to all values."""
    private = isinstance(error, OfAValue) and any(column.is_private for column in model.columns)
    return _HIDDEN if private else message_of(error)
