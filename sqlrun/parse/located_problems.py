"""Problems with a place in the analyst's file, from a node or a place in the rendered SQL. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from sqlglot import exp

from sqlrun.errors import Place, Problem
from sqlrun.parse.source_map import source_place
from sqlrun.project import Rendered
from sqlrun.transpile.trees import place_of

# A source in a template: its group and its name.
_CALL = re.compile(r"""source\(\s*(['"])(\w+)\1\s*,\s*(['"])(\w+)\3\s*\)""")


def at(code: str, rendered: Rendered, node: exp.Expr | None, message: str, hint: str = "", word: str = "") -> Problem:
    """Return a problem at the place of a node."""
    line, column = place_of(cast(exp.Expression | None, node))
    return problem(code, rendered, line, column, message, hint, word or word_of(node))


def word_of(node: exp.Expr | None) -> str:
    """Return the first name in a node, to find it in the analyst's line; "" if it has none."""
    identifier = node.find(exp.Identifier) if node is not None else None
    return identifier.name if identifier is not None else ""


def problem(
    code: str,
    rendered: Rendered,
    line: int,
    column: int,
    message: str,
    hint: str = "",
    word: str = "",
) -> Problem:
    """Return a problem at a place in the rendered SQL, mapped to the analyst's file; line 0 means unknown."""
    message, hint = as_written(message, rendered), as_written(hint, rendered)
    if not line:
        first = next((text for text in rendered.model.sql.split("\n") if text.strip()), "")
        place = Place(rendered.model.file, rendered.model.sql.split("\n").index(first) + 1, exact=False)
        return Problem(code, place, message, hint, first)
    place, excerpt = source_place(rendered, line, column, word)
    return Problem(code, place, message, hint, excerpt)


def named(found: Problem, rendered: Rendered) -> Problem:
    """Return a problem that names sources as the analyst does."""
    return replace(found, message=as_written(found.message, rendered), hint=as_written(found.hint, rendered))


def as_written(text: str, rendered: Rendered) -> str:
    """Return a text about rendered SQL that names sources as the analyst does: source('group', 'name').

    A column loses this name, which the analyst can't have written. If the analyst uses the rendered name, it stays.
    """
    for name in dict.fromkeys(rendered.sources):
        if name.lower() in text.lower() and not re.search(rf"\b{name}\b", rendered.model.sql, re.IGNORECASE):
            text = re.sub(rf"(`{name}`|\b{name})\.(?=[\w`])", "", text, flags=re.IGNORECASE)
            text = re.sub(rf"\b{name}\b", source_call(name, rendered), text, flags=re.IGNORECASE)
    return text


def other_tables(name: str, offered: Iterable[str], rendered: Rendered) -> str:
    """Return a hint for an unknown table alias: the tables of the query, and a similar one."""
    offered = list(offered)
    sources = [table for table in offered if is_source(table, rendered)]
    near = difflib.get_close_matches(name, [table for table in offered if table not in sources], 1)
    hint = f"Tables: {', '.join(offered) or 'none'}."
    if near:
        return f"{hint} Did you mean `{near[0]}`?"
    alias = f" Give the source an alias: {{{{ {source_call(sources[0], rendered)} }}}} as {name}." if sources else ""
    return hint + alias


def is_source(alias: str, rendered: Rendered) -> bool:
    """Return whether a table's alias in rendered SQL is the name of a source, which has no other alias."""
    return alias.lower() in {name.lower() for name in rendered.sources}


def source_call(name: str, rendered: Rendered) -> str:
    """Return the call that names a source in a template, by its name in rendered SQL."""
    found = [(call[2], call[4]) for call in _CALL.finditer(rendered.model.sql)]
    calls = {f"{group}__{table}".lower(): (group, table) for group, table in found}
    group, table = calls.get(name.lower()) or name.split("__", 1)
    return f"source('{group}', '{table}')"
