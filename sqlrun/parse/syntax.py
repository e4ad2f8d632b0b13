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
        message = "function window() isn't allowed in a model"
        return problem("SR305", rendered, line, column, message, unsupported_syntax.WINDOW, "window")
    description = str(error.get("description") or "").rstrip(".")
    highlight = str(error.get("highlight") or "")
    line, column = int(str(error.get("line") or 1)), int(str(error.get("col") or 1))
    if description.startswith(MISCOUNTED):
        hint = "Correct the number of arguments. docs/functions.md lists the functions."
        at = max(1, column - len(highlight) + 1)
        return problem("SR554", rendered, line, at, description.removeprefix(MISCOUNTED), hint, highlight)
    column = max(1, column - len(highlight.split("\n")[-1]) + 1)
    hint = "Check the text before it too. A comma, a parenthesis or a keyword may be missing or superfluous."
    return problem("SR301", rendered, line, column, described(error), hint, highlight)


def described(error: Mapping[str, object]) -> str:
    """Return one of the parser's errors in words of SQL, without the parser's own names.

    >>> described({"description": "Invalid expression / Unexpected token", "highlight": ")"})
    'syntax error: unexpected `)`'
    >>> described({"description": "Expecting )", "highlight": "2"})
    'syntax error near `2`: expected )'
    """
    words, near = str(error.get("description") or "").rstrip("."), str(error.get("highlight") or "")
    words = words.replace("Invalid expression / Unexpected token", "")
    # sqlglot names its own classes here, which no SQL contains.
    words = re.sub(r"^Required \w+:? '\w+' missing for <class .*", "an expression or keyword is missing", words)
    words = f"{words[:1].lower()}{words[1:]}".replace("expecting ", "expected ")
    if near and not words:
        return f"syntax error: unexpected `{near}`"
    return f"syntax error{f' near `{near}`' if near else ''}: {words or 'the query is incomplete'}"


def unclosed(rendered: Rendered, error: TokenError) -> Problem:
    """Return the problem of an unclosed quote or comment, at the place where it begins."""
    for found in restrictions.PIECES.finditer(rendered.sql):
        if not found["open"]:
            continue
        before = rendered.sql[: found.start()]
        line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
        what = "comment" if found["open"] == "/*" else "quote"
        message, close = f"syntax error: this {what} is never closed", "*/" if what == "comment" else found["open"]
        return problem(
            "SR301", rendered, line, column, message, f"Add {close} at the end of the {what}.", found["open"]
        )
    return problem("SR301", rendered, 1, 1, f"syntax error: {text_lines(str(error))[0]}")
