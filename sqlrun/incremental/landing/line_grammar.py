"""What a source's line is: strict JSON (RFC 8259, without lone surrogates), of bounded length and depth. Pure.

Readers of JSON are lenient, each in its own way: one takes NaN, another a comma too many, and both read a number as a
double and write it anew. So neither is asked what a token is. The tokens are told apart here, by regular expressions
that mean the same to Java and RE2, and a number is quoted before an engine reads the line: it stays the text it is.
What is left to the engines is how brackets, commas and colons follow one another, on which they agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.engine_api import Dialect
from sqlrun.transpile import writer as sql

MOST_BYTES = 16 * 1024 * 1024  # Spark's reader takes no text of more than 20,000,000 characters
DEEPEST = 64  # objects and lists in one another; Spark's reader goes a thousand deep, others have no limit
TOO_LONG = "longer than 16 MiB"
BLANKS = " \t"
# One step of looking how deep a line is takes so many levels away.
_LEVELS = 8
# A value begins with its kind where Spark reads it: a text, a number. What is neither begins with t, f, { or [.
TEXT_MARK, NUMBER_MARK = "s", "n"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Regular expressions of JSON's tokens.

    Java needs possessive repetitions: others recurse for each character, and a long line overflows its stack. RE2 knows
    none and needs none. None of these ever has to give back what it took, so both match the same.
    """

    more: str  # any number of times
    maybe: str

    @property
    def space(self) -> str:
        """What may stand between tokens."""
        return rf"[ \t\r\n]{self.more}"

    @property
    def text(self) -> str:
        """A text, with escapes that are whole: of surrogates, pairs alone."""
        unit = r"u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
        pair = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        return rf'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|{unit}|{pair}))){self.more}"'

    @property
    def any_text(self) -> str:
        """Any text of a line that is known to have whole ones alone: less to match."""
        return rf'"(?:[^"\\]|\\.){self.more}"'

    @property
    def number(self) -> str:
        """A number as JSON has it."""
        digits = f"[0-9][0-9]{self.more}"
        whole = f"-{self.maybe}(?:0|[1-9][0-9]{self.more})"
        return f"{whole}(?:[.]{digits}){self.maybe}(?:[eE][+-]{self.maybe}{digits}){self.maybe}"

    @property
    def line(self) -> str:
        """Tokens alone, each after what it may come after; whether brackets match is for an engine to say."""
        other = rf"{self.number}|true|false|null|[{{\[]"
        member = f"(?:{self.space}:{self.space}(?:{self.text}|{other}))"
        comma = f"(?:,{self.space}){self.maybe}"
        value = f"{comma}(?:{self.text}{member}{self.maybe}|{other})"
        return rf"{self.space}[{{](?:{self.space}(?:{value}|[\]}}])){self.more}{self.space}"


def tokens(dialect: Dialect) -> Tokens:
    """Return the tokens in an engine's regular expressions."""
    return Tokens("*+", "?+") if dialect == "spark" else Tokens("*", "?")


def matches(text: str, pattern: str, dialect: Dialect) -> str:
    """Write the test that a whole text has a form."""
    if dialect == "spark":
        whole = rf"\A(?:{pattern})\z"
        return f"{text} rlike {sql.string(whole, dialect)}"
    return f"regexp_full_match({text}, {sql.string(pattern, dialect)})"


def stripped(text: str, dialect: Dialect) -> str:
    """Write a text without the blanks around it."""
    blanks = sql.string(BLANKS, dialect)
    return f"trim(both {blanks} from {text})" if dialect == "spark" else f"trim({text}, {blanks})"


def short(text: str, dialect: Dialect) -> str:
    """Write the test that a line isn't too long."""
    return f"{'octet_length' if dialect == 'spark' else 'strlen'}({text}) <= {MOST_BYTES}"


def well_formed(text: str, dialect: Dialect) -> str:
    """Write the test that a line has the tokens of a JSON object, and isn't too deep."""
    return f"{matches(text, tokens(dialect).line, dialect)} and {_shallow(text, dialect)}"


def _shallow(text: str, dialect: Dialect) -> str:
    """Take the innermost levels of brackets away, some at a time, and see whether any are left.

    A line with few brackets is spared that.
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
    """Write a well-formed line so that an engine's reader keeps each value's text: numbers become texts.

    For Spark, whose reader doesn't tell a text from an object, each of them begins with a mark of what it was.
    """
    known = tokens(dialect)
    before = rf'(?:[^"0-9-]|{known.any_text}){known.more}'
    if dialect == "spark":
        keys = rf'(?:{known.any_text}{known.space}:|[^"])*+'
        value = sql.string(rf'\G({keys})"((?:[^"\\]|\\.)*+)"', dialect)
        number = sql.string(rf"\G({before})({known.number})", dialect)
        marked = f"regexp_replace({text}, {value}, '$1\"{TEXT_MARK}$2\"')"
        return f"regexp_replace({marked}, {number}, '$1\"{NUMBER_MARK}$2\"')"
    # RE2 has no \G: what follows the last number is matched too, or the search would go on inside of a text. That
    # leaves an empty text at the end.
    pattern = sql.string(rf"({before})({known.number}|$)", dialect)
    return f"left(regexp_replace({text}, {pattern}, '\\1\"\\2\"', 'g'), -2)"
