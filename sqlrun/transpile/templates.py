"""Templates of DuckDB's SQL whose arguments are evaluated once. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import sqlglot
from sqlglot import exp

from sqlrun.transpile.trees import copied

Translation = Callable[[list[exp.Expr]], exp.Expr]
PREFIX = "arg_"
# Maximum size of an argument that is repeated. A larger one is bound to a name, so that nested calls don't double the
# text.
MOST_REPEATED = 3
# The errors of templates begin with the first text, as DuckDB reports them and damaged files by one class of exception.
# Behind the second is the expression that fails; no expression that sqlglot writes contains it outside of a string.
FAILED = "SR533 "
EXPRESSION = " <- "
_repeating: ContextVar[bool] = ContextVar("repeating", default=False)
_expression: ContextVar[Callable[[], str]] = ContextVar("expression", default=str)


class UnlikeSparkError(Exception):
    """A call that DuckDB can't run as Spark does: what DuckDB does differently, and what to write instead."""

    def __init__(self, why: str, instead: str = "") -> None:
        self.why = why
        self.instead = instead
        super().__init__(why)


def piece(template: str, **arguments: exp.Expr) -> exp.Expr:
    """Return a template of DuckDB's SQL with its arguments, which it names `arg_<name>`.

    >>> piece("case when arg_n < 0 then 0 else arg_n end", n=exp.column("a")).sql("duckdb")
    '(CASE WHEN a < 0 THEN 0 ELSE a END)'
    """
    tree = exp.paren(copied(_parsed(template)), copy=False)
    if "error(" in template:
        _name_expression(tree)
    uses: dict[str, list[exp.Column]] = {}
    for column in tree.find_all(exp.Column):
        if column.name.startswith(PREFIX):
            uses.setdefault(column.name.removeprefix(PREFIX), []).append(column)
    bound = {} if _repeating.get() else _repeated_large(uses, arguments)
    for name, places in uses.items():
        for place in places:
            if name in bound:
                place.replace(exp.Dot(this=exp.to_identifier("_let"), expression=exp.to_identifier(name)))
            else:
                place.replace(_closed(copied(arguments[name])))
    return _let(tree, bound) if bound else tree


@contextmanager
def repeating(on: bool) -> Iterator[None]:
    """Bind no arguments to names inside the block: DuckDB allows no lambda over aggregates in HAVING."""
    token = _repeating.set(on)
    try:
        yield
    finally:
        _repeating.reset(token)


@contextmanager
def failing(expression: Callable[[], str]) -> Iterator[None]:
    """Name an expression, which the function returns in Spark SQL, in the errors of the templates inside the block."""
    token = _expression.set(expression)
    try:
        yield
    finally:
        _expression.reset(token)


def _name_expression(tree: exp.Expr) -> None:
    for found in tree.find_all(exp.Anonymous):
        if found.name.lower() == "error":
            message, behind = found.expressions[0], f"{EXPRESSION}{_expression.get()()}"
            if isinstance(message, exp.Literal):
                message.replace(exp.Literal.string(f"{FAILED}{message.name}{behind}"))
            else:  # it quotes the value
                message.replace(call("concat", exp.Literal.string(FAILED), message, exp.Literal.string(behind)))


def _repeated_large(uses: Mapping[str, list[exp.Column]], arguments: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    bound = {name: arguments[name] for name, places in uses.items() if len(places) > 1 and _is_large(arguments[name])}
    if bound:
        # The body of the lambda may not contain aggregates, so all other large arguments are bound, too.
        bound |= {name: arguments[name] for name in uses if _is_large(arguments[name])}
    return bound


def repeated(template: str, **arguments: exp.Expr) -> exp.Expr:
    """Return a template with its arguments, each repeated wherever it occurs."""
    with repeating(True):
        return piece(template, **arguments)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a DuckDB function over copies of the arguments, so that their own tree stays intact."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def of(template: str, names: str) -> Translation:
    """Return a translation by a template, whose arguments have one-letter names in order."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) != len(names):
            raise UnlikeSparkError(f"it takes {len(names)} argument{'s' * (len(names) != 1)}, not {len(arguments)}")
        return piece(template, **dict(zip(names, arguments, strict=True)))

    return build


def number(node: exp.Expr | None) -> int | None:
    """Return an integer literal's value; None for any other expression."""
    if isinstance(node, exp.Paren):
        return number(node.this)
    if isinstance(node, exp.Neg):
        inner = number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    return None


def text(node: exp.Expr | None) -> str | None:
    """Return a string literal's value; None for any other expression."""
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


@functools.cache
def _parsed(template: str) -> exp.Expr:
    tree = sqlglot.parse_one(template, read="duckdb")
    for bracket in tree.find_all(exp.Bracket):
        # sqlglot counts from 0 internally, and guesses from the type whether an index is one.
        if any(isinstance(index, exp.Column) for index in bracket.expressions):
            bracket.set("offset", 1)
    return tree


def _is_large(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column | exp.Literal | exp.Lambda):
        return False
    many = sum(1 for part in node.walk() if not isinstance(part, exp.Identifier | exp.DataType | exp.DataTypeParam))
    return many > MOST_REPEATED


def _closed(node: exp.Expr) -> exp.Expr:
    """Return a node in brackets if a neighboring operator could bind to a part of it."""
    loose = isinstance(node, exp.Binary | exp.Unary | exp.Between | exp.In | exp.Is) and not isinstance(
        node, exp.Dot | exp.Paren
    )
    return exp.paren(node, copy=False) if loose else node


def _let(tree: exp.Expr, bound: dict[str, exp.Expr]) -> exp.Expr:
    values = {name: exp.Subquery(this=n.copy()) if isinstance(n, exp.Select) else n.copy() for name, n in bound.items()}
    fields = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in values.items()]
    rows = exp.Array(expressions=[exp.Struct(expressions=fields)])
    body = exp.Lambda(this=tree, expressions=[exp.to_identifier("_let")])
    return exp.Bracket(this=call("list_transform", rows, body), expressions=[exp.Literal.number(1)], offset=1)
