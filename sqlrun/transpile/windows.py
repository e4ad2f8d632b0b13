"""Keys of windows as DuckDB takes them: it calls `error()` volatile, and a window's key may not be. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.transpile.templates import piece


def settled(window: exp.Window) -> exp.Window:
    """Let a key of a window that may be an error be one by a cast that fails, which DuckDB takes.

    The text of the error is the same; it stands in DuckDB's own. A key without any column is left as it is.
    """
    order = window.args.get("order")
    for key in [*(window.args.get("partition_by") or ()), *(order.expressions if order is not None else ())]:
        column = key.find(exp.Column)
        errors = [call for call in key.find_all(exp.Anonymous) if call.name.lower() == "error"]
        for call in errors if column is not None else ():
            # Of constants alone it would be computed, and fail, before a row is read.
            template = "case when cast(concat(arg_m, left(cast(arg_c as varchar), 0)) as integer) > 0 then null end"
            call.replace(piece(template, m=call.expressions[0], c=column))
    return window
