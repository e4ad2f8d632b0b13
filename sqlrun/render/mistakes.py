"""A call with an invalid argument in a template, and the templates that led there. Pure."""

from __future__ import annotations

import sys
from typing import Any

# The call stack of templates, as (file, line), the innermost first.
Chain = tuple[tuple[str, int], ...]


class Mistake(Exception):
    """A call with an invalid argument; `call` is the text to find in the analyst's line."""

    def __init__(self, code: str, message: str, hint: str, call: str) -> None:
        self.code, self.message, self.hint, self.call = code, message, hint, call
        self.chain = chain_of(sys._getframe())
        super().__init__(message)


def chain_of(frame: Any) -> Chain:
    """Return the templates that are running in a frame and its callers."""
    found = []
    while frame is not None:
        template = frame.f_globals.get("__jinja_template__")
        if template is not None:
            found.append((str(template.name), int(template.get_corresponding_lineno(frame.f_lineno))))
        frame = frame.f_back
    return tuple(found)
