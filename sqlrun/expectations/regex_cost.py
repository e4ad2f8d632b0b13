"""Worst-case cost of a regular expression, derived from its structure. Pure.

Python's searches backtrack, and nothing in the same process can interrupt one; so a separate process runs the
expressions that might never end.
"""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

# Maximum number of steps of a search: about ten seconds.
MOST_STEPS = 1e9
_NEVER = 1e6  # a power of ten that no computer reaches


def may_run_away(pattern: str, longest: int, count: int) -> bool:
    """Return whether a search in `count` texts of at most `longest` letters may take more than a few seconds.

    >>> may_run_away("^[A-Z]{2}-[0-9]+$", 30, 1000), may_run_away("^([a-z]+)*$", 30, 1)
    (False, True)
    """
    parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    try:
        power = _power(parser.parse(pattern), max(longest, 1))
    except RecursionError:
        return True
    return power + math.log10(max(longest, 1)) + math.log10(max(count, 1)) > math.log10(MOST_STEPS)


def _power(nodes: Any, longest: int) -> float:
    """Return the number of ways to match a sequence, as a power of ten."""
    return min(_NEVER, sum(_ways(str(op), args, longest) for op, args in nodes))


def _ways(op: str, args: Any, longest: int) -> float:
    match op:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, body = int(args[0]), int(args[1]), args[2]
            inner, most = _power(body, longest), min(int(high), longest)
            if low == high:
                return min(_NEVER, inner * low)
            # Each repetition may match in each of its ways.
            return min(_NEVER, math.log10(max(most - low, 1) + 1) + inner * max(most, 1))
        case "BRANCH":
            return math.log10(max(2, len(args[1]))) + max(_power(part, longest) for part in args[1])
        case "SUBPATTERN":
            return _power(args[3], longest)
        case "ASSERT" | "ASSERT_NOT":
            return _power(args[1], longest)
        case "ATOMIC_GROUP":
            return _power(args, longest)
        case "GROUPREF_EXISTS":
            return max(_power(part, longest) for part in args[1:] if part is not None)
        case _:
            return 0.0
