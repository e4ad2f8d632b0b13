"""The grammar of a source's line: strict JSON (RFC 8259, no lone surrogates), bounded in length and depth. Pure.

JSON readers are lenient, each in its own way: one accepts NaN, another a superfluous comma, and both read a number as a
double and rewrite it. So no engine decides what a token is. Regular expressions that mean the same to Java and RE2
recognize the tokens, and each number is quoted before an engine reads the line, so that its text stays unchanged. The
engines only check how brackets, commas and colons follow each other, and on that they agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.engine_api import Dialect
from sqlrun.transpile import writer as sql

MOST_BYTES = 16 * 1024 * 1024  # Spark's reader rejects texts of more than 20,000,000 characters
DEEPEST = 64  # Maximum nesting of objects and lists; Spark's reader allows 1,000, other readers have no limit.
TOO_LONG = "longer than 16 MiB"
BLANKS = " \t"
# Number of levels that each step of the depth test removes.
_LEVELS = 8
# Marks of the kind of a value for Spark's reader: text or number. Other values begin with t, f, { or [.
TEXT_MARK, NUMBER_MARK = "s", "n"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Regular expressions of JSON's tokens.

    Java needs possessive quantifiers: others recurse for each character, and a long line overflows the stack. RE2 has
    none and needs none. No expression here ever backtracks, so both match the same.
    """

    more: str  # zero or more times
    maybe: str

    @property
    def space(self) -> str:
        """Return the pattern of white space between tokens."""
        return rf"[ \t\r\n]{self.more}"

    @property
    def text(self) -> str:
        """Return the pattern of a text with valid escapes; surrogates must come in pairs."""
        unit = r"u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
        pair = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        return rf'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|{unit}|{pair}))){self.more}"'

    @property
    def any_text(self) -> str:
        """Return a cheaper pattern of a text, for lines whose texts are known to be valid."""
        return rf'"(?:[^"\\]|\\.){self.more}"'

    @property
    def number(self) -> str:
        """Return the pattern of a JSON number."""
        digits = f"[0-9][0-9]{self.more}"
        whole = f"-{self.maybe}(?:0|[1-9][0-9]{self.more})"
        return f"{whole}(?:[.]{digits}){self.maybe}(?:[eE][+-]{self.maybe}{digits}){self.maybe}"

    @property
    def line(self) -> str:
        """Return the pattern of an object's tokens in a valid order; the engine checks that brackets match."""
        other = rf"{self.number}|true|false|null|[{{\[]"
        member = f"(?:{self.space}:{self.space}(?:{self.text}|{other}))"
        comma = f"(?:,{self.space}){self.maybe}"
        value = f"{comma}(?:{self.text}{member}{self.maybe}|{other})"
        return rf"{self.space}[{{](?:{self.space}(?:{value}|[\]}}])){self.more}{self.space}"


def tokens(dialect: Dialect) -> Tokens:
    """Return the tokens as regular expressions of an engine."""
    return Tokens("*+", "?+") if dialect == "spark" else Tokens("*", "?")


def matches(text: str, pattern: str, dialect: Dialect) -> str:
    """Return SQL that tests whether a whole text matches a pattern."""
    if dialect == "spark":
        whole = rf"\A(?:{pattern})\z"
        return f"{text} rlike {sql.string(whole, dialect)}"
    return f"regexp_full_match({text}, {sql.string(pattern, dialect)})"


def stripped(text: str, dialect: Dialect) -> str:
    """Return SQL for a text without leading and trailing blanks."""
    blanks = sql.string(BLANKS, dialect)
    return f"trim(both {blanks} from {text})" if dialect == "spark" else f"trim({text}, {blanks})"


def short(text: str, dialect: Dialect) -> str:
    """Return SQL that tests whether a line is at most `MOST_BYTES` long."""
    return f"{'octet_length' if dialect == 'spark' else 'strlen'}({text}) <= {MOST_BYTES}"


def well_formed(text: str, dialect: Dialect) -> str:
    """Return SQL that tests whether a line has the tokens of a JSON object and isn't nested too deeply."""
    return f"{matches(text, tokens(dialect).line, dialect)} and {_shallow(text, dialect)}"


def _shallow(text: str, dialect: Dialect) -> str:
    """Return SQL that removes the innermost levels of brackets several times and tests that none is left.

    Lines with few brackets skip this test.
    """
    few = f"length({text}) - length(translate({text}, '[{{', '')) <= {DEEPEST}"
    known = tokens(dialect)
    other = rf'{known.any_text}|[^"\[\]{{}}]'
    left = _without(text, other, dialect)
    levels = f"[\\[{{][\\]}}]{'' if dialect == 'duckdb' else '{1}+'}"
    for _ in range(_LEVELS - 1):
        levels = f"[\\[{{](?:{levels}){known.more}[\\]}}]"
    for _ in range(DEEPEST // _LEVELS):
        left = _without(left, levels, dialect)
    return f"case when {few} then true else {left} = '' end"


def _without(text: str, pattern: str, dialect: Dialect) -> str:
    every = "" if dialect == "spark" else ", 'g'"
    return f"regexp_replace({text}, {sql.string(pattern, dialect)}, ''{every})"


def readable(text: str, dialect: Dialect) -> str:
    """Return SQL that rewrites a well-formed line so that an engine's reader keeps each value's text.

    Numbers become texts.

    Spark's reader doesn't distinguish a text from an object. For Spark, each value begins with a mark of its kind.
    """
    known = tokens(dialect)
    before = rf'(?:[^"0-9-]|{known.any_text}){known.more}'
    if dialect == "spark":
        keys = rf'(?:{known.any_text}{known.space}:|[^"])*+'
        value = sql.string(rf'\G({keys})"((?:[^"\\]|\\.)*+)"', dialect)
        number = sql.string(rf"\G({before})({known.number})", dialect)
        marked = f"regexp_replace({text}, {value}, '$1\"{TEXT_MARK}$2\"')"
        return f"regexp_replace({marked}, {number}, '$1\"{NUMBER_MARK}$2\"')"
    # RE2 has no \G. So the pattern also matches what follows the last number; otherwise the search would continue
    # inside a text. That leaves an empty text at the end.
    pattern = sql.string(rf"({before})({known.number}|$)", dialect)
    return f"left(regexp_replace({text}, {pattern}, '\\1\"\\2\"', 'g'), -2)"
