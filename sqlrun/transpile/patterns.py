"""Regular expressions that aren't valid: Spark fails on the first row, DuckDB before it runs. Pure."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from sqlglot import exp

from sqlrun.transpile.templates import text
from sqlrun.transpile.trees import every

_CALLS = (
    exp.RegexpLike, exp.RegexpExtract, exp.RegexpExtractAll, exp.RegexpReplace, exp.RegexpInstr, exp.RegexpCount,
    exp.RegexpSplit,
)  # fmt: skip
# Python's error, and the same in words. Python refuses more than Java does, such as `^*`, so no other error counts.
_ERRORS = (
    (r"missing \), unterminated subpattern", "`(` has no `)`"),
    (r"unbalanced parenthesis", "`)` has no `(`"),
    (r"unterminated character set", "`[` has no `]`"),
    (r"bad escape \(end of pattern\)", r"it ends with a single `\`"),
    (r"min repeat greater than max repeat", "a repetition's least number is above its greatest"),
    (r"bad character range [^\\\[]-[^\\\[]$", "a range's first letter is behind its last"),
)
_REPEATS = re.compile(r"(nothing to repeat|multiple repeat)")
# One escape, class or letter of a pattern.
_PIECES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
# Java's quotations, and classes inside a class.
_JAVA_ALONE = re.compile(r"\\Q|\[[^\]]*\[")
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
HINT = "Correct the pattern. A letter with a meaning of its own is written as in '[(]'."


def invalid(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield literal patterns that no engine can read: (node, why, what to write instead)."""
    for call in every(tree, *_CALLS, exp.Anonymous):
        if isinstance(call, exp.Anonymous):
            pattern = (
                call.expressions[1] if call.name.lower() == "regexp_substr" and len(call.expressions) > 1 else None
            )
        else:
            pattern = call.args.get("expression")
        written = text(pattern)
        why = fault(written) if written is not None else ""
        if pattern is not None and why:
            yield pattern, f"the pattern '{written}' isn't a valid regular expression: {why}", HINT


def fault(pattern: str) -> str:
    r"""Return what is wrong with a regular expression in Java's syntax; "" if nothing is, or if it isn't known.

    >>> fault("("), fault("a)"), fault("[a"), fault("*a"), fault("a{x}"), fault("^*"), fault("[(]")
    ('`(` has no `)`', '`)` has no `(`', '`[` has no `]`', 'nothing is before `*`', '`{` begins no repetition', '', '')
    """
    if _JAVA_ALONE.search(pattern):
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except re.error as error:
        at = error.pos or 0
        if _REPEATS.match(error.msg):
            return _without_start(pattern, at)
        return next((why for known, why in _ERRORS if re.match(known, error.msg)), "")
    except (RecursionError, OverflowError):
        return ""
    position = 0
    for piece in _PIECES.findall(pattern):
        if piece == "{" and not _COUNT.match(pattern, position):
            return "`{` begins no repetition"
        position += len(piece)
    return ""


def _without_start(pattern: str, at: int) -> str:
    """Return what is wrong with a repetition at a position; "" for one that Java reads, such as that of a `^`."""
    letter, before = pattern[at : at + 1], pattern[:at]
    is_dangling = letter in ("*", "+", "?") and (not before or re.search(r"(?<!\\)(\||\(|\(\?:|[*+?][*?]?)$", before))
    return f"nothing is before `{letter}`" if is_dangling else ""
