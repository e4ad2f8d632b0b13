"""Places of errors in templates: the lines that an error came through, columns, and unclosed blocks. Pure."""

from __future__ import annotations

import re

from sqlrun.render.mistakes import Chain

# An unclosed tag matches to the end: otherwise a text of many `{#` would be scanned again from each of them.
TAG = re.compile(r"\{#.*?(?:#\}|\Z)|\{%[-+]?\s*(?P<tag>\w+)(?P<rest>.*?)(?:%\}|\Z)", re.DOTALL)
CLOSED = ("for", "if", "macro", "call", "filter", "set", "raw", "with", "block", "autoescape")


def chain_of_error(error: BaseException) -> Chain:
    """Return the templates that an error came through, the innermost first."""
    found, step = [], error.__traceback__
    while step is not None:
        template = step.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            found.append((str(template.name), int(template.get_corresponding_lineno(step.tb_lineno))))
        step = step.tb_next
    return tuple(reversed(found))


def column(line: str, call: str) -> int:
    """Return the column (from 1) of a call in a line: of the wrong argument, or of the name; 0 if it isn't there.

    >>> column("from {{ ref( 'orders') }}", "ref(orders")
    15
    """
    name, paren, argument = call.partition("(")
    if not name.strip():
        return 0
    word = rf"\b{re.escape(name)}" if name[0].isalnum() or name[0] == "_" else re.escape(name)
    if not paren:
        found = re.search(word + (r"\b" if name[-1].isalnum() else ""), line)
        return found.start() + 1 if found else 0
    found = re.search(rf"{word}\s*\(\s*['\"]?({re.escape(argument)})", line)
    return found.start(1) + 1 if found else 0


def unclosed(text: str) -> tuple[str, int] | None:
    """Return the innermost unclosed block with its line; None if all are closed."""
    opened: list[tuple[str, int]] = []
    for found in TAG.finditer(text):
        tag = found["tag"] or ""
        line = text.count("\n", 0, found.start()) + 1
        if tag in CLOSED and not (tag == "set" and "=" in found["rest"]):
            opened.append((tag, line))
        elif tag.startswith("end") and opened and opened[-1][0] == tag[3:]:
            opened.pop()
    return opened[-1] if opened else None
