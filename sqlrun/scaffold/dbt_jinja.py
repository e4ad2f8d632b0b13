"""dbt's templates as text: their refs, the arguments of config(), blocks of is_incremental(), macros. Pure."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

READ = re.compile(r"""\bref\(\s*(['"])(\w+)\1\s*\)""")
_OF_PACKAGE = re.compile(r"""\bref\(\s*(['"])(\w+)\1\s*,\s*(['"])(\w+)\3\s*\)""")
SOURCE = re.compile(r"""\bsource\(\s*(['"])([^'"]+)\1\s*,\s*(['"])([^'"]+)\3\s*\)""")
# A text that is one call of ref() or source().
CALL = re.compile(r"""\s*(?:ref|source)\([^()]*\)\s*""")
CONFIG = re.compile(r"\{\{-?\s*config\(")
END = re.compile(r"\)\s*-?\}\}[ \t]*\n?")
BRANCH = re.compile(r"\{%-?\s*(if|elif|else|endif)\b(.*?)-?%\}", re.DOTALL)
INCREMENTAL = re.compile(r"\s*(not\s+)?is_incremental\(\s*\)\s*(and\b.*)?", re.DOTALL)
MACRO = re.compile(r"\{%-?\s*macro\s+(\w+).*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)
GENERIC = re.compile(
    r"\{%(-?)\s*(?:data_)?test\s+(\w+)(.*?)(-?)%\}(.*?)\{%(-?)\s*end(?:data_)?test\s*(-?)%\}", re.DOTALL
)
COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
VARIANT = re.compile(r"([a-z]+)__(\w+)")
# Of `adapter.dispatch`: what is called in Spark SQL.
OURS = ("default", "spark", "databricks")
BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConfigCall:
    """The first call of config() in a text: its place, and its arguments as they are written."""

    start: int
    end: int
    arguments: tuple[tuple[str, str], ...]


def config_call(text: str) -> ConfigCall | None:
    """Return the first call of config(); None if there is none, or one that can't be read.

    >>> config_call("{{ config(tags=['a', 'b'], x = 1) }} select 1").arguments
    (('tags', "['a', 'b']"), ('x', '1'))
    """
    found = CONFIG.search(text)
    if found is None:
        return None
    pieces, end = _pieces(text, found.end())
    closed = END.match(text, end)
    named = [piece.partition("=") for piece in pieces if piece.strip()]
    if closed is None or not all(name.strip().isidentifier() and sign for name, sign, _ in named):
        return None
    return ConfigCall(found.start(), closed.end(), tuple((name.strip(), value.strip()) for name, _, value in named))


def _pieces(text: str, start: int) -> tuple[list[str], int]:
    """Return the arguments after an opening bracket, and the place of the bracket that closes it."""
    pieces, depth, quote, begin = [], 0, "", start
    for place in range(start, len(text)):
        sign = text[place]
        if quote:
            quote = "" if sign == quote and text[place - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}" and depth:
            depth -= 1
        elif sign == ")" or (sign == "," and not depth):
            pieces.append(text[begin:place])
            begin = place + 1
            if sign == ")":
                return pieces, place
    return pieces, len(text)


def with_config(text: str, call: ConfigCall | None, arguments: Sequence[tuple[str, str]]) -> str:
    """Return a text with another config(), or without one; without a call it is put first."""
    written = ", ".join(f"{key}={value}" for key, value in arguments)
    written = f"{{{{ config({written}) }}}}\n" if arguments else ""
    return written + text if call is None else text[: call.start] + written + text[call.end :]


def value_of(written: str) -> Any:
    """Return the value of an argument that is a literal; None for any other.

    >>> value_of("'a'"), value_of("['a', \\"b\\"]"), value_of("true"), value_of("var('x')")
    ('a', ['a', 'b'], True, None)
    """
    word = written.strip()
    try:
        return word.lower() == "true" if word.lower() in ("true", "false") else ast.literal_eval(word)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def without_incremental(text: str) -> tuple[str, int]:
    """Return a text as it is where is_incremental() is false, and the number of blocks that decided it.

    >>> without_incremental("a {% if is_incremental() %}b{% else %}c{% endif %} d")
    ('a c d', 1)
    """
    count = 0
    while True:
        found = next(_decided(text), None)
        if found is None:
            return text, count
        text, count = found, count + 1


def _decided(text: str) -> Iterator[str]:
    tags = list(BRANCH.finditer(text))
    for index, tag in enumerate(tags):
        condition = INCREMENTAL.fullmatch(tag[2]) if tag[1] == "if" else None
        # `not is_incremental() and x` depends on x.
        if condition is None or (condition[1] and condition[2]):
            continue
        depth, other = 0, None
        for end in tags[index + 1 :]:
            if depth == 0 and end[1] in ("elif", "endif"):
                if end[1] == "endif":
                    first = text[tag.end() : (other or end).start()]
                    second = text[other.end() : end.start()] if other else ""
                    yield _joined(text[: tag.start()], first if condition[1] else second, text[end.end() :])
                break
            depth += {"if": 1, "endif": -1}.get(end[1], 0)
            other = end if end[1] == "else" and depth == 0 else other


def _joined(before: str, kept: str, after: str) -> str:
    """Return the pieces as one text; where nothing is between, without the line that would be empty."""
    if kept.strip():
        return before + kept + after
    before, after = before.rstrip(" \t"), after.lstrip(" \t")
    return before + (after[1:] if before.endswith("\n") and after.startswith("\n") else after)


def rewritten(text: str, packages: Sequence[str], source: Callable[[str, str], str | None]) -> str:
    """Return a text whose refs have one name, whose macros have no package of the project, and whose sources are refs.

    `source` returns what a source is read as; None for one that stays.
    """
    text = _OF_PACKAGE.sub(lambda found: f"ref('{found[4]}')", text)

    def read(found: re.Match[str]) -> str:
        name = source(found[2], found[4])
        return found[0] if name is None else f"ref('{name}')"

    text = SOURCE.sub(read, text)
    if packages:
        text = re.sub(rf"\b(?:{'|'.join(map(re.escape, packages))})\.(\w+)\(", r"\1(", text)
    return text


def generic_tests(text: str) -> Iterator[tuple[str, str]]:
    """Yield each generic test of a file as a macro: the test's name, and the macro's text.

    >>> list(generic_tests("{% test odd(model) %}select 1{% endtest %}"))
    [('odd', '{% macro test_odd(model) %}select 1{% endmacro %}')]
    """
    for found in GENERIC.finditer(COMMENT.sub("", text)):
        begin = f"{{%{found[1]} macro test_{found[2]}{found[3].rstrip()} {found[4]}%}}"
        yield found[2], f"{begin}{found[5]}{{%{found[6]} endmacro {found[7]}%}}"


def macros(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each macro of a file."""
    for found in MACRO.finditer(COMMENT.sub("", text)):
        yield found[1], found[0]


def parameters(macro: str) -> tuple[str, ...]:
    """Return the names of a macro's parameters.

    >>> parameters("{% macro m(model, values, quote=true) %}{% endmacro %}")
    ('model', 'values', 'quote')
    """
    start = macro.find("(")
    pieces, _ = _pieces(macro, start + 1)
    return tuple(piece.partition("=")[0].strip() for piece in pieces if piece.strip())


def literal(value: Any) -> str:
    """Return a YAML value as an expression of Jinja; dbt reads a text with braces, or one call of ref, as a template.

    >>> literal(["a", 1, True, None]), literal("ref('x')"), literal("{{ var('d') }} days")
    ('["a", 1, true, none]', "ref('x')", 'var(\\'d\\') ~ " days"')
    """
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() | float() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(literal, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{json.dumps(str(key))}: {literal(inner)}" for key, inner in value.items()) + "}"
    text = str(value)
    if CALL.fullmatch(text):
        return text.strip()
    pieces = BRACES.split(text)
    written = [piece.strip() if place % 2 else _text(piece) for place, piece in enumerate(pieces)]
    kept = [piece for place, piece in enumerate(written) if piece and (place % 2 or pieces[place])]
    return " ~ ".join(kept) if kept else '""'


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
