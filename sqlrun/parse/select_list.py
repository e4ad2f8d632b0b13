"""Compare a query's columns with the contract (SR306 to SR308). Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sqlglot import exp

from sqlrun.errors import Problem
from sqlrun.parse.located_problems import at
from sqlrun.project import Rendered
from sqlrun.transpile.dialect import DIALECT


def problems(rendered: Rendered, columns: tuple[str, ...], tree: exp.Query) -> Iterable[Problem]:
    """Yield the columns that the contract or the query lacks, and duplicate columns."""
    model = rendered.model
    declared = [column.name for column in model.columns]
    selects = {s.alias_or_name: s for s in tree.selects}
    nameless = [name for name in columns if name not in declared and _is_nameless(selects.get(name))]
    for name in nameless:
        item = selects[name].unalias()
        wanted = next((c for c in declared if c not in columns), "a_name")
        shown = item.sql(DIALECT)
        yield at("SR306", rendered, item, f"the column `{shown}` has no name", f"Add a name: {shown} as {wanted}.")
    for name in columns:
        if name not in declared and name not in nameless:
            hint = f"Add it under `columns:` in {model.contract_file}, with its data_type and description."
            message = f"column `{name}` is not in the contract of `{model.name}`"
            yield at("SR306", rendered, selects.get(name), message, hint)
    for column in model.columns if not nameless else ():
        if column.name not in columns:
            free = [name for name in columns if name not in declared]
            near = difflib.get_close_matches(column.name, free, 1)
            hint = f"Select the column, or remove it from the contract. The query returns: {', '.join(columns)}." + (
                f" Did you mean `{near[0]}`?" if near else ""
            )
            message = f"column `{column.name}` of the contract is missing in the query, {model.file}"
            yield Problem("SR307", column.place, message, hint)
    for name in sorted({c for c in columns if columns.count(c) > 1}):
        message = f"duplicate output column `{name}`"
        yield at("SR308", rendered, selects.get(name), message, "Give one of them another alias.")


def _is_nameless(item: exp.Expr | None) -> bool:
    """Return whether sqlglot named an item of the select list: such a name has no place."""
    if not isinstance(item, exp.Alias) or isinstance(item.this, exp.Column | exp.Dot):
        return False
    return "line" not in item.args["alias"].meta
