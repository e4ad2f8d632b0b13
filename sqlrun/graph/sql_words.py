"""The words of a short SQL text that name a column, where its tables aren't known. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot.errors import TokenError

from sqlrun.transpile.dialect import DIALECT

Kind = sqlglot.TokenType


class UnclearError(ValueError):
    """Why a column of a text can't be renamed, as the end of a sentence about the text."""


def words_to_rename(text: str, old: str, new: str) -> Iterator[tuple[int, int]]:
    """Yield the places and lengths of all names that are written like a column. If all change, none is confused.

    A text in quotes is none, but for Great Expectations' `col("x")`.

    Raises: UnclearError if the text has the new name already, or can't be read.
    """
    try:
        tokens = sqlglot.tokenize(text, read=DIALECT)
    except TokenError as error:
        raise UnclearError("can't be read") from error
    words = [token.text.lower() for token in tokens if token.token_type != Kind.STRING]
    if old.lower() in words and new.lower() in words:
        raise UnclearError(f"names `{new}` already")
    for index, token in enumerate(tokens):
        if token.text.lower() != old.lower():
            continue
        is_call = index + 1 < len(tokens) and tokens[index + 1].token_type == Kind.L_PAREN
        if token.token_type in (Kind.VAR, Kind.IDENTIFIER):
            if not is_call:
                yield token.start, token.end - token.start + 1
        elif token.token_type == Kind.STRING:
            if [one.text for one in tokens[max(index - 2, 0) : index]] == ["col", "("]:
                yield token.start + 1, len(token.text)
        else:
            raise UnclearError(f"has `{old}`, which is also a word of SQL. Change it by hand")
