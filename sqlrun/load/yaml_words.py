"""What a YAML parser reports, in words about the text: its own name for a token helps no reader. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

FIX = "Fix the YAML here."
_QUOTE = "Quote the value if it contains a colon and a space, or correct the indentation."
_INDENT = "Indent all keys of a mapping, and all items of a list, equally."
# By a pattern of the parser's message: what is wrong, how to fix it.
_WORDS: Mapping[str, tuple[str, str]] = {
    r"expected <block end>, but found .*": ("the indentation doesn't match the lines above", _INDENT),
    r"mapping values are not allowed here": ("a key inside a value", _QUOTE),
    r"(block )?sequence entries (are )?not allowed here": ("a list item isn't allowed here", _INDENT),
    r"could not find expected ':'": ("a key without `:`", "Add `:` and a space after the key."),
    r"expected ',' or '([\]}])', but got .*": (r"a `,` or `\1` is missing", "Add the comma, or close the bracket."),
    r"expected the node content, but found .*": ("a value is missing", "Add the value."),
    r"found character '\\t' that cannot start any token": ("a tab in the indentation", "Use spaces."),
    r"found character '(.)' that cannot start any token": (
        r"a value can't begin with `\1`",
        "Quote the value.",
    ),
    r"found unexpected end of stream": ("a quote is never closed", "Close the quote."),
    r"found undefined alias '?(.*?)'?": (r"unknown alias `\1`", "Define the anchor above, or quote the value."),
    r"expected a single document in the stream": ("a second document", "Remove the line `---`."),
    r"but found another document": ("a second document", "Remove the line `---`."),
}


def plain(message: str) -> tuple[str, str]:
    """Return what is wrong with a text, and how to fix it.

    >>> plain("expected <block end>, but found '<block mapping start>'")[0]
    "the indentation doesn't match the lines above"
    >>> plain("something new")
    ('something new', 'Fix the YAML here.')
    """
    for pattern, (words, hint) in _WORDS.items():
        found = re.fullmatch(pattern, message)
        if found is not None:
            return found.expand(words), hint
    return message, FIX
