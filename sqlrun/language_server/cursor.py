"""What an editor's cursor is at: a call in a template, a column of an alias, or a word of SQL. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

# How much text before the cursor decides.
BEFORE = 400
_WORD = re.compile(r"\w*")


@dataclass(frozen=True, slots=True)
class At:
    """What is typed: `kind` and the word begun, with its place; `of` is the group, package or alias before it."""

    kind: str  # ref | group | table | macro | column | word
    word: str
    start: int
    end: int
    of: str = ""


_FORMS = (
    ("ref", re.compile(r"\bref\(\s*['\"](\w*)$")),
    ("table", re.compile(r"\bsource\(\s*['\"](?P<of>\w+)['\"]\s*,\s*['\"](\w*)$")),
    ("group", re.compile(r"\bsource\(\s*['\"](\w*)$")),
)
_MEMBER = re.compile(r"(?:\b(?P<of>\w+)\.)?(\w*)$")


def at(text: str, offset: int, *, whole: bool = False) -> At:
    """Return what is at a place of a text; `whole`: with the rest of the word behind it."""
    found = _WORD.match(text, offset)
    end = found.end() if found and whole else offset
    before = text[max(0, end - BEFORE) : end]
    for kind, form in _FORMS:
        if match := form.search(before):
            word = match.groups()[-1]
            of = match.groupdict().get("of") or ""
            return At(kind, word, end - len(word), end, of)
    match = _MEMBER.search(before)
    word, of = (match[2], match["of"] or "") if match else ("", "")
    is_macro = in_template(before)
    return At("macro" if is_macro else "column" if of else "word", word, end - len(word), end, of)


def in_template(before: str) -> bool:
    """Return whether a text ends inside of a tag of Jinja.

    >>> in_template("a {{ x }} b"), in_template("a {{ x"), in_template("a {% if x")
    (False, True, True)
    """
    opened = max(before.rfind("{{"), before.rfind("{%"))
    return opened > max(before.rfind("}}"), before.rfind("%}"))
