"""Keys of windows that DuckDB accepts: it treats `error()` as volatile, and a window's key may not be. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.transpile.templates import piece


def settled(window: exp.Window) -> exp.Window:
    """Replace `error()` in a window's keys by a cast that fails, which DuckDB accepts.

    DuckDB's own error then contains the text. A key without columns stays as it is.
    """
    order = window.args.get("order")
    for key in [*(window.args.get("partition_by") or ()), *(order.expressions if order is not None else ())]:
        column = key.find(exp.Column)
        errors = [call for call in key.find_all(exp.Anonymous) if call.name.lower() == "error"]
        for call in errors if column is not None else ():
            # An expression of constants would be evaluated, and fail, before a row is read.
            template = "case when cast(concat(arg_m, left(cast(arg_c as varchar), 0)) as integer) > 0 then null end"
            call.replace(piece(template, m=call.expressions[0], c=column))
    return window
