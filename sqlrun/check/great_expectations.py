"""Evaluation by Great Expectations, on pandas. Shell: Great Expectations and pandas."""

from __future__ import annotations

import functools
import logging
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, cast

from sqlrun.check.comparable_columns import FLOAT, UNITS, Prepared
from sqlrun.check.samples import SAMPLES
from sqlrun.errors import SqlrunError
from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.expectations.values import number
from sqlrun.project import Expectation
from sqlrun.runtime.text_lines import text_lines
from sqlrun.runtime.time_limit import within

if TYPE_CHECKING:
    import pyarrow as pa

# The whole process shares Great Expectations' registry, its context and the warnings filters.
_LOCK = threading.Lock()
# True: the check passed. A text: it raised an error. A mapping: Great Expectations' result with its details.
Said = bool | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One expectation to evaluate, by its index, with its columns."""

    number: int
    expectation: Expectation
    prepared: Prepared

    @property
    def mostly(self) -> float:
        """Return the share of rows that has to be as expected."""
        return number(self.expectation.kwargs.get("mostly"), 1.0)


def evaluated(asked: Sequence[Asked], rows: int, check_timeout: float) -> dict[int, Said]:
    """Evaluate pass or fail first, which is half the work; then get counts and positions, for failures only.

    `rows`: the length of the columns. Each of the two runs may take `check_timeout` seconds. A check that may pass
    with unexpected rows is counted at once.
    """
    with _LOCK:
        _batch_definition()  # the time of the first import doesn't count as a check's time
        frame = _frame(asked, rows)
        quick = _validated(frame, [item for item in asked if item.mostly >= 1.0], "BOOLEAN_ONLY", check_timeout)
        again = [item for item in asked if quick.get(item.number, False) is not True]
        again = [item for item in again if not isinstance(quick.get(item.number), str)]
        return quick | _validated(frame, again, "SUMMARY", check_timeout)


def message(error: Exception) -> str:
    """Return the first line of an error's text, truncated."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return next((line for line in text_lines(text) if line.strip()), type(error).__name__)[:300]


@functools.cache
def _great_expectations() -> Any:
    """Import Great Expectations without its effects on the process: captured warnings, logging, progress bars."""
    showwarning = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own imports' deprecations don't concern users of sqlrun
        import great_expectations

        if warnings.showwarning is not showwarning:
            logging.captureWarnings(False)
    # What it logs (a check it can't load, a metric that raised) is in the results here.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL + 1)
    return great_expectations


@functools.cache
def _batch_definition() -> Any:
    """Return the process's only context; each run adds its data."""
    gx = _great_expectations()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("sqlrun").add_dataframe_asset("changes")
    return asset.add_batch_definition_whole_dataframe("rows")


def _frame(asked: Sequence[Asked], count: int) -> Any:
    import pandas

    arrays = {name: array for item in asked for name, array in item.prepared.columns.items()}
    if any(CATALOGUE[item.expectation.type].scope == "schema" for item in asked):
        count = 0
    series = {name: _series(name, array) for name, array in arrays.items()}
    return pandas.DataFrame(series, index=pandas.RangeIndex(count))


def _series(name: str, array: pa.Array) -> Any:
    """Convert one column: Python objects where numpy would round or lose values, and NaN distinct from NULL."""
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


def _validated(frame: Any, asked: Sequence[Asked], form: str, check_timeout: float) -> dict[int, Said]:
    """Run Great Expectations; after an error run the checks one by one, so that only one of them gets the error."""
    if not asked:
        return {}
    try:
        return within(check_timeout, lambda: _run(frame, asked, form))
    except Exception as error:  # validation errors, and pandas' own: this check's error, never a pass
        if len(asked) == 1:
            return {asked[0].number: message(error)}
        return {key: result for item in asked for key, result in _validated(frame, [item], form, check_timeout).items()}


def _run(frame: Any, asked: Sequence[Asked], form: str) -> dict[int, Said]:
    gx = _great_expectations()
    from great_expectations.validator.v1_validator import Validator

    batch_definition = _batch_definition()
    with warnings.catch_warnings():
        # pandas warns of groups in a regex, numpy of empty means: the result already covers both.
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
            raise SqlrunError(f"{len(suite.expectations)} of {len(asked)} declared checks loaded")
        # batch.validate() would load the batch a second time, and hash every value of it each time.
        validator = Validator(
            batch_definition,
            result_format={"result_format": form, "partial_unexpected_count": SAMPLES},
            batch_parameters={"dataframe": frame},
        )
        results: Any = validator.validate_expectation_suite(suite).results
    found = {item.expectation_config.meta["sqlrun"]: _read(item, form) for item in results}
    if set(found) != {item.number for item in asked} or len(results) != len(asked):
        raise SqlrunError(f"{len(found)} of {len(asked)} declared checks evaluated")
    return found


def _read(result: Any, form: str) -> Said:
    """Return one result; exception_info is flat, or has one entry for each metric."""
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if isinstance(entry, Mapping) and entry.get("raised_exception"):
            return message(Exception(entry.get("exception_message") or "the check raised an error"))
    if result.success is None:
        return "Great Expectations returned no result"
    if form == "BOOLEAN_ONLY":
        return bool(result.success)
    own = result.to_json_dict()
    raw = {key: own.get(key) for key in ("success", "result", "exception_info")}
    return {**cast(Mapping[str, Any], result.result), "success": bool(result.success), "raw": raw}


def load() -> None:
    """Import Great Expectations and create the objects that all checks share."""
    _batch_definition()
