"""Validation of suites; checks that a contract implies; the rows that each check needs. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from sqlrun.errors import Place, Problem
from sqlrun.expectations.arguments import mistakes
from sqlrun.expectations.catalogue import CATALOGUE, QUERY, VOLUME, WEEKS, Kind, Scope, near
from sqlrun.expectations.sql import batch_query, condition_query, passes, row_predicate, unlike_types
from sqlrun.expectations.values import PARAMETERS, columns_of, families, parameter, typed
from sqlrun.project import CRITICAL, FAIL, ON_FAIL, QUARANTINE, SEVERITIES, Expectation, Model, Suite, Value

__all__ = ["from_contract", "of_model", "passes", "problems", "scope", "split"]

_IGNORE = {
    "expect_compound_columns_to_be_unique": "all",
    "expect_select_column_values_to_be_unique_within_record": "all",
    "expect_multicolumn_sum_to_equal": "all",
    "expect_multicolumn_values_to_be_equal": "all",
}
_TEXT_ONLY = re.compile("regex|value_lengths|strftime|dateutil|json")


def scope(expectation: Expectation) -> Scope:
    """Return which rows an expectation needs: changed rows, rows that share their keys, the table, or none."""
    if expectation.type != QUERY:
        return CATALOGUE[expectation.type].scope
    return _query_scope(str(expectation.kwargs["unexpected_rows_query"]))


@lru_cache(1024)  # each tick asks several times for each check
def _query_scope(query: str) -> Scope:
    return "table" if row_predicate(batch_query(query)) is None else "row"


def split(
    expectations: Sequence[Expectation],
) -> tuple[tuple[Expectation, ...], tuple[Expectation, ...]]:
    """Split the quarantine rules (rows that break them are quarantined at landing) from the checks of a tick."""
    rules = tuple(item for item in expectations if item.on_fail == QUARANTINE)
    return rules, tuple(item for item in expectations if item.on_fail != QUARANTINE)


def from_contract(model: Model) -> tuple[Expectation, ...]:
    """Return the checks that a contract implies: not-null columns, the grain unless rows repeat, dbt's `data_tests`."""
    found = [
        Expectation(
            "expect_column_values_to_not_be_null",
            {"column": column.name},
            CRITICAL,
            FAIL,
            f"{column.name} is never null",
            column.place,
        )
        for column in model.columns
        if not column.nullable
    ]
    if model.grain and not model.repeats:
        found.append(_unique(model))
    found.extend(one for column in model.columns for one in column.promises)
    return tuple(found)


def of_model(model: Model, suite: Suite | None) -> tuple[Expectation, ...]:
    """Return the expectations of a model: its contract's keys and nulls, then its suite."""
    return (*from_contract(model), *(suite.expectations if suite else ()))


def _unique(model: Model) -> Expectation:
    compound = len(model.grain) > 1
    kind = "compound_columns" if compound else "column_values"
    kwargs: Mapping[str, Value] = {"column_list": list(model.grain)} if compound else {"column": model.grain[0]}
    first = model.column(model.grain[0])
    return Expectation(
        f"expect_{kind}_to_be_unique",
        kwargs,
        CRITICAL,
        FAIL,
        "rows are unique by " + ", ".join(model.grain),
        first.place if first else Place(model.contract_file),
    )


def problems(suite: Suite, model: Model, *, lands: bool, is_view: bool = False) -> tuple[Problem, ...]:
    """Return the errors of a suite (SR7xx); Great Expectations itself would silently ignore some of them.

    A view stores nothing, so its checks would never run. `lands`: the model reads a source, so that its rows can be
    quarantined before they land.
    """
    if is_view and suite.expectations:
        hint = "Check the models that read the view, or set `materialized: table`."
        message = f"`{model.name}` is a view, and sqlrun checks tables only"
        return (Problem("SR719", suite.expectations[0].place, message, hint),)
    found = [problem for expectation in suite.expectations for problem in _problems(expectation, model, lands)]
    if suite.max_quarantined is not None and not lands:
        message = f"`{model.name}` reads no source, so it can't quarantine rows"
        hint = "Move max_quarantined to the suite of the model that lands the source."
        found.append(Problem("SR708", suite.max_quarantined.place, message, hint))
    return tuple(sorted(found, key=lambda problem: (problem.place, problem.code)))


def promised_problems(expectation: Expectation, model: Model) -> tuple[Problem, ...]:
    """Return the errors of one check that a contract declares."""
    return tuple(_problems(expectation, model, False))


def _problems(expectation: Expectation, model: Model, lands: bool) -> list[Problem]:
    place = expectation.place
    found = [Problem(*mistake[:1], place, *mistake[1:]) for mistake in _words(expectation)]
    kind = CATALOGUE.get(expectation.type)
    if kind is None:
        hint = near(expectation.type, tuple(CATALOGUE))
        message = f"unknown expectation `{expectation.type}`"
        return [*found, Problem("SR701", place, message, hint)]
    if kind.refused:
        message = f"sqlrun doesn't support `{kind.name}`"
        return [*found, Problem("SR702", place, message, f"The reason: {kind.refused}.")]
    named = [*_arguments(expectation, kind)] or [*_named_columns(expectation, kind, model)]
    # Values and SQL are only valid if the arguments and columns exist.
    deeper = named or [*_values(expectation, kind, model)]
    deeper = deeper or [*_quarantine(expectation, model, lands)] or [*_volume(expectation, model, lands)]
    return found + [Problem(code, place, message, hint) for code, message, hint in deeper]


_Mistake = tuple[str, str, str]  # code, message, hint


def _words(expectation: Expectation) -> Iterator[_Mistake]:
    if expectation.severity not in SEVERITIES:
        message = f"unknown severity `{expectation.severity}` of `{expectation.type}`"
        yield "SR706", message, near(expectation.severity, SEVERITIES)
    if expectation.on_fail not in ON_FAIL:
        message = f"unknown on_fail `{expectation.on_fail}` of `{expectation.type}`"
        yield "SR707", message, near(expectation.on_fail, ON_FAIL)


def _arguments(expectation: Expectation, kind: Kind) -> Iterator[_Mistake]:
    for name in expectation.kwargs:
        if name not in kind.allowed:
            yield "SR703", f"unknown argument `{name}` of `{kind.name}`", near(name, kind.allowed)
    for name in kind.columns + kind.required:
        if expectation.kwargs.get(name) is None:
            yield "SR704", f"`{kind.name}` lacks the argument `{name}`", f"Add `{name}:` to its kwargs."
    for bounds in (("min_value", "max_value"), ("min_ratio", "max_ratio")):
        bounded = set(bounds) <= set(kind.allowed) and "threshold" not in kind.allowed
        if bounded and all(expectation.kwargs.get(name) is None for name in bounds):
            yield "SR704", f"`{kind.name}` lacks {' and '.join(bounds)}", "Add at least one of them to its kwargs."


def _named_columns(expectation: Expectation, kind: Kind, model: Model) -> Iterator[_Mistake]:
    names = tuple(column.name for column in model.columns)
    for name in columns_of(expectation):
        if name not in names:
            yield "SR705", f"unknown column `{name}` of `{model.name}`", near(name, names)
    listed = expectation.kwargs.get("column_list")
    if "column_list" in kind.columns and (not isinstance(listed, list) or len(listed) < 2):
        yield (
            "SR713",
            "column_list must be a list of at least two columns",
            f"Write column_list: [{', '.join(names[:2])}]",
        )


def _values(expectation: Expectation, kind: Kind, model: Model) -> Iterator[_Mistake]:
    kwargs = expectation.kwargs
    yield from _parameters(kwargs)
    mistaken = [*mistakes(kwargs)]
    yield from (("SR713", f"`{kind.name}`: {name} {wrong}", "") for name, wrong in mistaken)
    if mistaken:
        return
    yield from _mostly(kwargs, kind)
    yield from _regexes(kwargs)
    yield from _condition(kwargs, model)
    if kind.name == QUERY:
        try:
            wrong = [*unlike_types(batch_query(str(kwargs["unexpected_rows_query"])), model.columns)]
        except ValueError as error:
            wrong = [(str(error), "Use the form `select * from {batch} where …`.")]
        yield from (("SR711", f"unexpected_rows_query: {why}", instead) for why, instead in wrong)
    ignored = kwargs.get("ignore_row_if")
    if ignored is not None:
        word = _IGNORE.get(kind.name, "both")
        choices = (f"{word}_values_are_missing", _any_missing(word), _never(word))
        if ignored not in choices:
            yield "SR713", f"unknown ignore_row_if `{ignored}`", near(str(ignored), choices)
    try:
        yield from _typed(expectation, kind, model)
    except ValueError as error:
        yield "SR713", f"`{kind.name}`: {error}", ""


def _any_missing(word: str) -> str:
    return "either_value_is_missing" if word == "both" else "any_value_is_missing"


def _never(word: str) -> str:
    return "neither" if word == "both" else "never"


def _parameters(kwargs: Mapping[str, Value]) -> Iterator[_Mistake]:
    for argument in kwargs.values():
        for value in argument if isinstance(argument, list) else [argument]:
            name = parameter(value)
            if name is not None and name not in PARAMETERS:
                yield "SR712", f"unknown parameter `{name}`", near(name, PARAMETERS)


def _mostly(kwargs: Mapping[str, Value], kind: Kind) -> Iterator[_Mistake]:
    mostly = kwargs.get("mostly")
    if mostly is None:
        return
    wrong = isinstance(mostly, bool) or not isinstance(mostly, (int, float))
    if wrong or not 0 < float(mostly) <= 1:  # type: ignore[arg-type]
        message = f"invalid mostly `{mostly!r}` of `{kind.name}`"
        yield "SR710", message, "Write the share of rows that must pass, above 0 and up to 1."


def _regexes(kwargs: Mapping[str, Value]) -> Iterator[_Mistake]:
    listed = kwargs.get("regex_list")
    patterns = [kwargs["regex"]] if "regex" in kwargs else listed
    if listed is not None and not isinstance(listed, list):
        yield "SR713", "regex_list must be a list", "Write regex_list: ['a', 'b']"
        return
    for pattern in patterns if isinstance(patterns, list) else []:
        try:
            re.compile(str(pattern))
        except re.error as error:
            yield "SR709", f"invalid regular expression `{pattern}`: {error}", "Fix the pattern."


def _condition(kwargs: Mapping[str, Value], model: Model) -> Iterator[_Mistake]:
    if kwargs.get("condition_parser", "spark") != "spark":
        yield "SR713", "condition_parser must be `spark`", "Write row_condition in Spark SQL."
    if kwargs.get("row_condition") is not None:
        try:
            wrong = [*unlike_types(condition_query(str(kwargs["row_condition"])), model.columns)]
        except ValueError as error:
            wrong = [(str(error), "")]
        yield from (("SR711", f"row_condition: {why}", instead) for why, instead in wrong)


def _typed(expectation: Expectation, kind: Kind, model: Model) -> Iterator[_Mistake]:
    kwargs, types = expectation.kwargs, families(model.columns)
    family = types.get(str(kwargs.get("column")), "other")
    if _TEXT_ONLY.search(kind.name) and family not in ("text", "other"):
        message = f"`{kind.name}` requires text, but `{kwargs['column']}` is {family}"
        yield "SR714", message, "Use an expectation about values, or cast the column in the model."
        return
    if "value_set" in kwargs:
        values = kwargs["value_set"]
        if not isinstance(values, list):
            yield "SR713", f"`{kind.name}`: value_set must be a list", ""
            return
        for value in values:
            typed(value, family)
    if kind.name.startswith("expect_column_values_to_be_between"):
        yield from _ordered([typed(kwargs.get(end), family) for end in ("min_value", "max_value")])
    elif "min_value" in kind.allowed:
        is_extreme = kind.name.startswith(("expect_column_min_", "expect_column_max_"))
        kept_family = family if is_extreme else "decimal"
        yield from _ordered([typed(kwargs.get(end), kept_family) for end in ("min_value", "max_value")])
    for name in ("value", "sum_total"):
        typed(kwargs.get(name), "decimal")


def _ordered(ends: list[Value], what: str = "value") -> Iterator[_Mistake]:
    low, high = ends
    if parameter(low) or parameter(high) or low is None or high is None:
        return
    if low > high:  # type: ignore[operator]
        yield "SR713", f"min_{what} {low} is greater than max_{what} {high}", "Correct one of them."


def _quarantine(expectation: Expectation, model: Model, lands: bool) -> Iterator[_Mistake]:
    if expectation.on_fail != QUARANTINE:
        return
    if not lands:
        message = f"`{model.name}` reads no source, so it can't quarantine rows"
        yield "SR708", message, "Move the rule to the model that lands the source, or set on_fail: fail."
    elif passes(expectation, model.columns) is None:
        message = f"`{expectation.type}` can't quarantine rows, because it doesn't check them one by one"
        yield "SR708", message, "Set on_fail: fail or on_fail: warn."
    elif expectation.kwargs.get("mostly", 1) != 1:
        message = "`mostly` and on_fail: quarantine contradict each other"
        yield (
            "SR708",
            message,
            "Remove one of them. `mostly` allows some bad rows, but quarantine removes each of them.",
        )


def _volume(expectation: Expectation, model: Model, lands: bool) -> Iterator[_Mistake]:
    if expectation.type != VOLUME:
        return
    if not lands:
        message = f"`{model.name}` reads no source, so no lines land in it"
        yield "SR720", message, "Move the check to the suite of the model that lands the source."
    ends = [expectation.kwargs.get(name) for name in ("min_ratio", "max_ratio")]
    for name, value in zip(("min_ratio", "max_ratio"), ends, strict=True):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf
        ):
            yield "SR713", f"invalid {name} `{value!r}`", "Write a share of the usual number of rows, such as 0.5."
            return
    yield from _ordered(ends, "ratio")
    weeks = expectation.kwargs.get("weeks", 1)
    if isinstance(weeks, bool) or not isinstance(weeks, int) or not 1 <= weeks <= WEEKS:
        yield "SR713", f"invalid weeks `{weeks!r}`", f"Write a number of weeks from 1 to {WEEKS}."
