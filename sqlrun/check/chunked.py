"""Checks of a change that is too large for memory: part by part, keys by SQL. Shell: the engine, DuckDB.

Checks of single rows run on one part after the other, and the counts are added up: the same result as in one piece,
in the memory of one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlrun.check.check_plan import LargeRows, Placed, Rows, Terms, Way
from sqlrun.check.evaluate import counted, not_evaluated, result_of, run_checks
from sqlrun.check.samples import SAMPLES, masked, sampled_columns
from sqlrun.check.sql_evaluator import kept
from sqlrun.events import CheckResult
from sqlrun.expectations.validate import scope
from sqlrun.expectations.values import columns_of, number
from sqlrun.outcome import Outcome
from sqlrun.project import INFO, WARN, Expectation, Model
from sqlrun.runtime import arrow_rows, text_table
from sqlrun.transpile.writer import identifier, same

if TYPE_CHECKING:
    import pyarrow as pa

Ways = Mapping[Way, Placed]
_OF_ALL = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_null")


@dataclass(slots=True)
class _Sum:
    """Running totals of one check; `looked_at`: number of rows that `mostly` is a share of."""

    expectation: Expectation
    evaluated: int = 0
    looked_at: int = 0
    unexpected: int = 0
    samples: tuple[str, ...] = ()
    seconds: float = 0.0
    error: CheckResult | None = None
    evaluator: str = ""


def run_large(model: Model, ways: Ways, rows: LargeRows, terms: Terms) -> dict[int, CheckResult]:
    """Evaluate expectations like `run_checks`, with the same results; return each by its index."""
    found = _in_one_pass(model, ways, rows, terms)
    for place, expectation in ways.get("keys", {}).items():
        found[place] = _keys(model, expectation, rows)
    rest = tuple(ways.get("whole", {}).values())
    if rest:
        keyed = rows.keyed() if any(scope(one) == "key" for one in rest) else None
        nothing = (keyed if keyed is not None else rows.whole()).slice(0, 0)
        results = run_checks(model, rest, Rows(nothing, keyed, rows.whole), terms)
        found |= dict(zip(ways["whole"], results, strict=True))
    return found


def _in_one_pass(model: Model, ways: Ways, rows: LargeRows, terms: Terms) -> dict[int, CheckResult]:
    """Evaluate the checks that need only the changed rows, reading these once."""
    found: dict[int, CheckResult] = {}
    summed = {place: _Sum(expectation) for place, expectation in ways.get("parts", {}).items()}
    schema, in_one = tuple(ways.get("schema", {}).values()), tuple(ways.get("piece", {}).values())
    pieces: list[pa.Table] = []
    for part in rows.parts() if summed or in_one or schema else ():
        _add(model, summed.values(), part, terms)
        if in_one:
            pieces.append(part.select(_needed(model, in_one, part)))
        if schema and not found:
            of_names = replace(terms, evaluator="auto")
            results = run_checks(model, schema, Rows(part.slice(0, 0)), of_names)
            found |= dict(zip(ways["schema"], (replace(r, evaluated=rows.count) for r in results), strict=True))
    found |= {place: _total(model, total) for place, total in summed.items()}
    if in_one:
        import pyarrow as pa

        results = run_checks(model, in_one, Rows(pa.concat_tables(pieces)), terms)
        found |= dict(zip(ways["piece"], results, strict=True))
    return found


def _needed(model: Model, expectations: Sequence[Expectation], part: pa.Table) -> list[str]:
    """Return the columns that some expectations evaluate or show; all columns if a condition may name any."""
    if any(e.kwargs.get("row_condition") is not None for e in expectations):
        return list(part.column_names)
    named = [name for e in expectations for name in columns_of(e)]
    return [name for name in part.column_names if name in sampled_columns(model, named)]


def _add(model: Model, sums: Iterable[_Sum], part: pa.Table, terms: Terms) -> None:
    """Evaluate on one part all checks without an earlier error; count every unexpected row, whatever `mostly` is."""
    todo = [total for total in sums if total.error is None]
    strict = tuple(_strict(total.expectation) for total in todo)
    results = run_checks(model, strict, Rows(part), terms)
    for total, result in zip(todo, results, strict=True):
        total.seconds += result.seconds
        # Report Great Expectations as the evaluator if it evaluated at least one part.
        total.evaluator = max(total.evaluator, result.evaluator)
        if result.status is Outcome.ERROR:
            total.error = result
            continue
        total.evaluated += result.evaluated
        total.unexpected += result.unexpected
        total.samples = (*total.samples, *result.samples)[:SAMPLES]
        total.looked_at += _looked_at(total.expectation, result.evaluated, part, terms)


def _strict(expectation: Expectation) -> Expectation:
    kwargs = {name: value for name, value in expectation.kwargs.items() if name != "mostly"}
    # As a note: a part needs only the count, no details about failures.
    return replace(expectation, kwargs=kwargs, severity=INFO, on_fail=WARN)


def _looked_at(expectation: Expectation, evaluated: int, part: pa.Table, terms: Terms) -> int:
    if number(expectation.kwargs.get("mostly"), 1.0) >= 1.0 or expectation.type in _OF_ALL:
        return evaluated
    condition = expectation.kwargs.get("row_condition")
    rows = part if condition is None else kept(part, str(condition), terms.as_of, terms.check_timeout)
    column = rows.column(str(expectation.kwargs["column"]))
    return len(column) - int(column.null_count)


def _total(model: Model, total: _Sum) -> CheckResult:
    expectation, error = total.expectation, total.error
    if error is not None:
        return replace(
            not_evaluated(model, expectation, error.message), seconds=total.seconds, evaluated=error.evaluated
        )
    mostly = number(expectation.kwargs.get("mostly"), 1.0)
    good = total.looked_at - total.unexpected
    success = total.unexpected == 0 or (total.looked_at > 0 and good / total.looked_at >= mostly)
    message = (
        f"{total.unexpected:,} of {text_table.counted(total.evaluated, 'row')} unexpected" if total.unexpected else ""
    )
    return result_of(
        model,
        expectation,
        success,
        total.evaluated,
        total.unexpected,
        total.samples,
        message,
        total.seconds,
        total.evaluator,
    )


def _keys(model: Model, expectation: Expectation, rows: LargeRows) -> CheckResult:
    """Count the rows that share their key with another one, by the engine."""
    names = columns_of(expectation)
    columns = [identifier(name, rows.dialect) for name in names]
    missing = " or " if str(expectation.kwargs.get("ignore_row_if")).startswith("any") else " and "
    ignored = missing.join(f"{column} is null" for column in columns)
    where = "true" if expectation.kwargs.get("ignore_row_if") == "never" else f"not ({ignored})"
    group = ", ".join(columns)
    groups = f"select {group}, count(*) as n from keyed where {where} group by {group} having count(*) > 1"
    sums = f"(select coalesce(sum(n), 0) from ({groups}) as q) as bad"
    ((count, bad),) = [tuple(row.values()) for row in rows.ask(f"select count(*) as n, {sums} from keyed").to_pylist()]
    samples: tuple[str, ...] = ()
    if bad:
        sampled = sampled_columns(model, names)
        listed = ", ".join(f"k.{identifier(name, rows.dialect)}" for name in sampled)
        on = " and ".join(same(f"k.{column}", f"q.{column}", rows.dialect) for column in columns)
        few = rows.ask(f"select {listed} from keyed as k join ({groups}) as q on {on} limit {SAMPLES}")
        samples = tuple(masked(model, row, "", sampled) for row in arrow_rows.plain(few))
    return counted(model, expectation, int(count), int(bad), samples, 0.0)
