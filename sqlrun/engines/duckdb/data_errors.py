"""Recognise DuckDB's errors about a value of a row, and what they say about the expression. Pure."""

from __future__ import annotations

from sqlrun.errors import DataError, EngineError, first_line
from sqlrun.transpile.templates import EXPRESSION, FAILED

# Messages about values that DuckDB reports by the classes of damaged files and of missing features.
_OF_VALUES = (
    "Malformed JSON", "More than one row returned by a subquery", "Map keys must be unique", "Unknown TimeZone",
    "Could not parse string",
)  # fmt: skip


def found(error: Exception) -> tuple[str, str] | None:
    """Return the message of an error about a value, and the expression in Spark SQL, "" if unknown.

    None for another error, such as a damaged file. sqlrun's own `error()` in compiled SQL names the expression.
    """
    # Below its message DuckDB shows the part of the statement that failed, which may hold messages of `error()`.
    kind, text = type(error).__name__, str(error).partition("\n\nLINE ")[0]
    if FAILED in text and kind in ("InvalidInputException", "ConversionException"):
        reason, _, expression = text.partition(FAILED)[2].rpartition(EXPRESSION)
        # The key of a window fails by a cast of the message to a number.
        return reason, expression.rpartition("' to INT")[0] if kind == "ConversionException" else expression
    reason = first_line(error).partition(" Error: ")[2]
    if kind in ("ConversionException", "OutOfRangeException") or reason.startswith(_OF_VALUES):
        return reason, ""
    return None


def as_engine_error(error: Exception) -> EngineError:
    """Return an error of DuckDB as sqlrun's, with its first line as the message; an `EngineError` as it is."""
    if isinstance(error, EngineError):
        return error
    value = found(error)
    return DataError(*value) if value is not None else EngineError(first_line(error))
