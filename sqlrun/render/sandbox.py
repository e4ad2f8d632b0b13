"""Jinja's sandbox: closed lists of attributes, immutable values, and limits on work and text. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from sqlrun.render import dbt_names, results
from sqlrun.render.line_map import marked
from sqlrun.render.mistakes import Mistake

# Maximum length of a text or a list that a template makes by multiplication.
LONGEST = 100_000
# Maximum length of a text that a template, a macro or a filter returns, and maximum weight of a value.
MOST_TEXT = 1_000_000
# Maximum length that a filter which repeats a text could produce, checked before it runs.
MOST_GROWTH = 10_000_000
# Maximum number of steps of one model: visited nodes of the template, and one for each 8 characters handled.
MOST_WORK = 5_000_000
# Minimum cost of a call or an operation, which take longer than other nodes.
COST = 10
# Maximum size of a number, in bits, and maximum width of a column.
MOST_BITS = 1_000
WIDEST = 10_000
# Filters without a use in a query: HTML, nondeterministic ones, and regular expressions over any text.
NO_FILTERS = ("random", "urlize", "xmlattr", "forceescape", "pprint", "filesizeformat", "striptags", "urlencode")
# Filters and methods whose result may be longer than their input, depending on their arguments.
GROW = {"center", "indent", "wordwrap", "replace", "join", "format", "format_map", "batch", "slice", "tojson", "round"}
GROW |= {"ljust", "rjust", "zfill"}
TEXT = {
    "capitalize", "casefold", "center", "count", "endswith", "find", "format", "format_map", "index", "isalnum",
    "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isspace", "istitle",
    "isupper", "join", "ljust", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind",
    "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase",
    "title", "upper", "zfill",
}  # fmt: skip
LOOP = {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"}
LOOP |= {"previtem", "nextitem", "cycle", "changed"}
PLAIN = (str, int, float, Decimal, date, time, list, tuple, dict, set, range)
# Values that aren't text but may be printed: they raise their own error, or are empty, as `a if b` without else.
NAMELESS = ("This", "NotIncremental", "Unknown", "Undefined", "Refused")
SHORTEN = "Shorten the template, or put the values into a seed."


class Budget:
    """The work that the current template has done."""

    def __init__(self) -> None:
        self._done = 0

    def begin(self) -> None:
        """Reset the count."""
        self._done = 0

    def charge(self, steps: int) -> str:
        """Add steps. Raises: Mistake (SR208) if there are too many."""
        self._done += steps
        if self._done > MOST_WORK:
            message = "the template doesn't stop looping, calling macros or copying text"
            raise Mistake("SR208", message, "Shorten the loops. Put values into a seed, and compute in SQL.", "")
        return ""

    def handle(self, what: str, *values: Any) -> int:
        """Add the work on values and return their weight. Raises: Mistake (SR208) if they are too heavy."""
        heavy = sum(weight(value) for value in values)
        if heavy > MOST_TEXT:
            raise _too_long(what)
        self.charge(COST + heavy // 8)
        return heavy

    def counted(self, values: Any) -> Any:
        """Return the values of a loop, each of which costs a step, even if the loop's filter drops it."""
        if isinstance(values, str | list | tuple | dict | range):
            self.charge(len(values))
            return values
        return _each(iter(values), self)

    def weighed(self, value: Any) -> Any:
        """Return a value, at the cost of comparing or slicing it."""
        self.handle("", value)
        return value

    def joined(self, *values: Any) -> str:
        """Return the result of `~`."""
        self.handle("~", values)
        return "".join(str(value) for value in values)

    def concat(self, pieces: Iterable[str]) -> str:
        """Return the text of a macro or a block."""
        found = list(pieces)
        self.charge(len(found))
        self.handle("", found)
        return "".join(found)


def environment(models: set[str], budget: Budget) -> Any:
    """Return the environment; `models` are the files whose lines are marked."""
    from jinja2 import StrictUndefined
    from jinja2.utils import Namespace

    class Unknown(StrictUndefined):
        """An unknown value can't be printed, not even inside a list."""

        __repr__ = StrictUndefined.__str__

    env = _sandbox(budget)(
        undefined=Unknown,
        extensions=[_marks(models), "jinja2.ext.do"],
        keep_trailing_newline=True,
        cache_size=0,
        finalize=_shown(budget),
    )
    env.globals.clear()
    env.globals["namespace"] = Namespace
    env.filters = {name: _limited(name, call, budget) for name, call in env.filters.items() if name not in NO_FILTERS}
    env.tests = {name: _weighed(call, budget) for name, call in env.tests.items()}
    return env


def _marks(models: set[str]) -> Any:
    from jinja2.ext import Extension
    from jinja2.lexer import Token

    class Marks(Extension):
        """Adds line numbers to the lines of models; a macro's lines have the number of its call."""

        def filter_stream(self, stream: Any) -> Any:
            return marked(list(stream), Token) if stream.filename in models else stream

    return Marks


def _sandbox(budget: Budget) -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Sandbox(ImmutableSandboxedEnvironment):
        """Jinja's sandbox with closed lists of attributes and a budget for all work."""

        intercepted_binops = frozenset(["+", "-", "*", "/", "//", "**", "%"])
        code_generator_class = _generator()
        # Calls that the generator adds to templates; each adds to the budget itself.
        charge = staticmethod(budget.charge)
        counted = staticmethod(budget.counted)
        weighed = staticmethod(budget.weighed)
        joined = staticmethod(budget.joined)
        concat = staticmethod(budget.concat)

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            allowed: Iterable[str] = ()
            match obj:
                case str():
                    allowed = TEXT
                case Mapping():
                    allowed = ("keys", "values", "items", "get", "update")
                case list():
                    allowed = ("index", "count", "append", "extend")
                case tuple():
                    allowed = ("index", "count")
                case date() | time() | Namespace():
                    return bool(super().is_safe_attribute(obj, attr, value))
                case _ if type(obj).__name__ == "LoopContext":
                    allowed = LOOP
                case _:
                    return dbt_names.is_safe(obj, attr) or results.is_safe(obj, attr)
            return attr in allowed

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if explodes(operator, left, right):
                raise _too_long(operator)
            budget.handle(operator, left, right)
            result = super().call_binop(context, operator, left, right)
            budget.handle(operator, result)
            return result

        def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
            if any(__obj is function for function in (__self.charge, __self.counted, __self.weighed, __self.joined)):
                return __obj(*args)
            name = str(getattr(__obj, "__name__", ""))
            if type(__obj).__name__ == "LoopContext" and args:
                args = (__self.counted(args[0]), *args[1:])
            receiver = getattr(__obj, "__self__", "")
            # Jinja wraps str.format; the text to format is in a cell of its closure.
            text = _formatted(__obj) if name in ("format", "format_map", "wrapper") else receiver
            grows = isinstance(text, str) and (name in GROW or text is not receiver)
            _check_growth(name or "(", text if grows else "", args, kwargs, grows)
            budget.handle(name or "(", text if isinstance(text, str | list | tuple | dict) else "", args, kwargs)
            result = super().call(__context, __obj, *args, **kwargs)
            budget.handle(name or "(", result)
            return result

    return Sandbox


def _generator() -> Any:
    """Return a code generator whose templates charge each iteration of a loop and each call of a macro."""
    from jinja2 import nodes
    from jinja2.compiler import CodeGenerator

    def call(name: str, *arguments: Any) -> Any:
        return nodes.Call(nodes.EnvironmentAttribute(name), list(arguments), [], None, None)

    def costs(node: Any) -> None:
        cost = sum(1 for _ in node.find_all(nodes.Node))
        node.body = [nodes.ExprStmt(call("charge", nodes.Const(cost))).set_lineno(node.lineno), *node.body]

    class Generator(CodeGenerator):
        """Jinja's generator over trees that count their work."""

        def visit_For(self, node: Any, frame: Any) -> None:
            node.iter = call("counted", node.iter).set_lineno(node.lineno)
            costs(node)
            super().visit_For(node, frame)

        def visit_Macro(self, node: Any, frame: Any) -> None:
            costs(node)
            super().visit_Macro(node, frame)

        def visit_CallBlock(self, node: Any, frame: Any) -> None:
            costs(node)
            super().visit_CallBlock(node, frame)

        def visit_Concat(self, node: Any, frame: Any) -> None:
            self.visit(call("joined", *node.nodes).set_lineno(node.lineno), frame)

        def visit_Compare(self, node: Any, frame: Any) -> None:
            for operand in node.ops:
                operand.expr = call("weighed", operand.expr).set_lineno(node.lineno)
            node.expr = call("weighed", node.expr).set_lineno(node.lineno)
            super().visit_Compare(node, frame)

        def visit_Getitem(self, node: Any, frame: Any) -> None:
            if isinstance(node.arg, nodes.Slice):
                node.node = call("weighed", node.node).set_lineno(node.lineno)
            super().visit_Getitem(node, frame)

    return Generator


def weight(value: Any) -> int:
    """Return the number of characters that a value would print, up to a little more than the limit.

    >>> weight("abc"), weight(["abc", 1])
    (3, 19)
    """
    found, waiting = 0, [value]
    while waiting and found <= MOST_TEXT:
        match waiting.pop():
            case str() | bytes() as text:
                found += len(text)
            case range() as numbers:
                found += 8 * len(numbers)
            case dict() as pairs:
                found += 8 * len(pairs)
                waiting += [*pairs, *pairs.values()] if found <= MOST_TEXT else []
            case list() | tuple() | set() as values:
                found += 8 * len(values)
                waiting += values if found <= MOST_TEXT else []
            case other if type(other).__name__ == "Namespace":
                found += 8
                waiting.append(object.__getattribute__(other, "_Namespace__attrs"))
    return found


def explodes(operator: str, left: Any, right: Any) -> bool:
    """Return whether an operation would return a value that is too long.

    >>> explodes("*", "a", 10**9), explodes("**", 9, 999999), explodes("*", 60, 60)
    (True, True, False)
    """
    if any(isinstance(side, int) and side.bit_length() > MOST_BITS for side in (left, right)):
        return True
    match operator, left, right:
        case "*", str() | list() | tuple(), int():
            return len(left) * right > LONGEST or weight(left) * right > MOST_GROWTH
        case "*", int(), str() | list() | tuple():
            return explodes("*", right, left)
        case "*", int(), int():
            return left.bit_length() + right.bit_length() > MOST_BITS
        case "**", int(), int():
            return left.bit_length() * right > MOST_BITS
        case "%", str(), _:
            return _wide(left)
    return False


def _wide(text: str) -> bool:
    """Return whether a format has a width of five digits or more, or one from an argument."""
    return bool(re.search(r"%[^%a-zA-Z]*(?:[0-9]{5}|\*)|\{[^{}]*[0-9]{5}|\{[^{}]*:[^{}]*\{", text))


def _check_growth(name: str, value: Any, args: Iterable[Any], kwargs: Mapping[str, Any], grows: bool) -> None:
    """Raise SR208 for a call that would repeat a text too often, before it runs."""
    if not grows:
        return
    given = [*args, *kwargs.values()]
    if name == "replace":
        given = given[1:]
    widths = [abs(number) for number in given if isinstance(number, int)]
    if isinstance(value, str) and name in ("format", "wrapper", "format_map") and _wide(value):
        raise _too_long("format")
    longest = max([1, *widths, *(weight(text) for text in given if not isinstance(text, int))])
    if name not in ("format", "wrapper", "format_map") and (
        any(width > WIDEST for width in widths) or max(1, weight(value)) * longest > MOST_GROWTH
    ):
        raise _too_long(name)


def _formatted(call: Any) -> Any:
    """Return the text of a `str.format` that Jinja has wrapped; "" if there is none."""
    cells = getattr(call, "__closure__", None) or ()
    return next((cell.cell_contents for cell in cells if isinstance(cell.cell_contents, str)), "")


def _limited(name: str, call: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    """Return a filter whose arguments and result cost work and may not be too long."""
    passed = 1 if getattr(call, "jinja_pass_arg", None) is not None else 0

    @functools.wraps(call)
    def limited(*args: Any, **kwargs: Any) -> Any:
        given = args[passed:]
        value = given[0] if given else ""
        if isinstance(value, Iterator):
            # Lazy values are limited by their own steps, but here they must be read.
            value = list(_each(value, budget))
            given = (value, *given[1:])
        budget.handle(name, given, kwargs)
        _check_growth(name, value, given[1:], kwargs, name in GROW)
        result = call(*args[:passed], *given, **kwargs)
        if isinstance(result, Iterator):
            return _each(result, budget)
        budget.handle(name, result)
        return result

    return limited


def _weighed(call: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    """Return a test, such as `is in`, whose arguments cost work."""
    passed = 1 if getattr(call, "jinja_pass_arg", None) is not None else 0

    @functools.wraps(call)
    def weighed(*args: Any) -> Any:
        budget.handle("is", args[passed:])
        return call(*args)

    return weighed


def _each(values: Iterator[Any], budget: Budget) -> Iterator[Any]:
    """Yield the values, each at a cost."""
    for value in values:
        budget.handle("", value)
        yield value


def _shown(budget: Budget) -> Callable[[Any], Any]:
    """Return the function that converts values to text; a function or a generator would print an address."""

    def shown(value: Any) -> Any:
        plain = value is None or isinstance(value, PLAIN) or type(value).__name__ in NAMELESS
        if not plain:
            kind = type(value).__name__
            lazy = kind == "generator"
            message = "this expression returns no text: " + ("a lazy list" if lazy else f"a {kind}")
            hint = "Append `| list` or `| join(', ')`." if lazy else "Call it with parentheses."
            raise Mistake("SR201", message, hint, "")
        budget.handle("", value)
        return value

    return shown


def _too_long(what: str) -> Mistake:
    if not what or what == "(":
        return Mistake("SR208", "this expression returns a value that is too long for a template", SHORTEN, "")
    return Mistake("SR208", f"`{what}` returns a value that is too long for a template", SHORTEN, what)
