"""Syntax errors of sqlglot in the analyst's words and with their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot.errors import TokenError

from sqlrun.errors import Problem
from sqlrun.parse import restrictions, unsupported_syntax
from sqlrun.parse.located_problems import problem
from sqlrun.project import Rendered
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile.dialect import MISCOUNTED


def wrong(rendered: Rendered, error: Mapping[str, object]) -> Problem:
    """Return the problem of a parser error (SR301), or of a call with the wrong number of arguments (SR554)."""
    line, column = restrictions.found(rendered.sql, unsupported_syntax.WINDOW_CALL)
    if line:
        # After GROUP BY, sqlglot parses window() as the WINDOW clause.
        message = "function window() may not be used in a model"
        return problem("SR305", rendered, line, column, message, unsupported_syntax.WINDOW, "window")
    description = str(error.get("description") or "syntax error").rstrip(".")
    # sqlglot's message names its own classes.
    description = re.sub(r"^Required \w+:? '\w+' missing for <class .*", "something is missing here", description)
    description = description.replace("Invalid expression / Unexpected token", "this does not belong here")
    highlight = str(error.get("highlight") or "")
    line, column = int(str(error.get("line") or 1)), int(str(error.get("col") or 1))
    message = f"SQL syntax: {description[0].lower()}{description[1:]}"
    if description.startswith(MISCOUNTED):
        hint = "See docs/functions.md for what may be called."
        at = max(1, column - len(highlight) + 1)
        return problem("SR554", rendered, line, at, description.removeprefix(MISCOUNTED), hint, highlight)
    if highlight:
        message += f", near `{highlight}`"
    column = max(1, column - len(highlight.split("\n")[-1]) + 1)
    hint = "Look at what stands before it too: a comma, a bracket or a word may be missing or too much."
    return problem("SR301", rendered, line, column, message, hint, highlight)


def torn(rendered: Rendered, error: TokenError) -> Problem:
    """Return the problem of an unclosed quote or comment, at the place where it begins."""
    for found in restrictions.PIECES.finditer(rendered.sql):
        if not found["open"]:
            continue
        before = rendered.sql[: found.start()]
        line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
        what = "comment" if found["open"] == "/*" else "quote"
        message, close = f"SQL syntax: this {what} is not closed", "*/" if what == "comment" else found["open"]
        return problem("SR301", rendered, line, column, message, f"Write {close} where it ends.", found["open"])
    return problem("SR301", rendered, 1, 1, f"SQL syntax: {text_lines(str(error))[0]}")
