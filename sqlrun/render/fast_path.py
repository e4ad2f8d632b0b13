"""Templates that only call something with texts, as most models do, filled in without Jinja. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlrun.render.line_map import mark

# What is longer may be beyond what a template may do.
LONGEST = 100_000
TEXT = r"'[^'\\\n{}]*'"
CALL = re.compile(rf"\{{\{{ *(\w+)\( *({TEXT}(?: *, *{TEXT})*)? *\) *\}}\}}")
ARGUMENT = re.compile(r"'([^']*)'")
# What is left of a template that is more than such calls.
OTHER = re.compile(r"\{[{%#]|[}%#]\}")


def fill(text: str, functions: Mapping[str, Callable[..., object]]) -> str | None:
    """Write a template out, with the marks that Jinja's way leaves; None where that is for Jinja to do.

    Functions raise what they raise, and then too Jinja has to tell where.

    >>> from sqlrun.render.line_map import unmarked
    >>> unmarked(fill("select a\\nfrom {{ ref('b') }} as c", {"ref": str.upper}) or "")
    ('select a\\nfrom B as c', (1, 2))
    """
    if len(text) > LONGEST:
        return None
    pieces, done, line, length = [], 0, 1, len(text)
    for call in CALL.finditer(text):
        before = text[done : call.start()]
        function = functions.get(call[1])
        if function is None or OTHER.search(before):
            return None
        pieces.append(_marked(before, line))
        line += before.count("\n")
        value = function(*ARGUMENT.findall(call[2] or ""))
        length += len(value) if isinstance(value, str) else 0
        # How a list is shown, and what is too much, is the sandbox's to say.
        if type(value) not in (str, int) or length > LONGEST:
            return None
        pieces += [mark(line), str(value)]
        done = call.end()
    rest = text[done:]
    return None if OTHER.search(rest) else "".join([*pieces, _marked(rest, line)])


def _marked(text: str, line: int) -> str:
    return "\n".join(mark(line + number) + part for number, part in enumerate(text.split("\n"))) if text else ""
