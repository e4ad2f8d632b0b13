"""Problems with a place in the analyst's file, from a node or a place in the rendered SQL. Pure."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from sqlrun.errors import Place, Problem
from sqlrun.parse.source_map import source_place
from sqlrun.project import Rendered
from sqlrun.transpile.trees import place_of


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
    if not line:
        first = next((text for text in rendered.model.sql.split("\n") if text.strip()), "")
        place = Place(rendered.model.file, rendered.model.sql.split("\n").index(first) + 1, exact=False)
        return Problem(code, place, message, hint, first)
    place, excerpt = source_place(rendered, line, column, word)
    return Problem(code, place, message, hint, excerpt)
