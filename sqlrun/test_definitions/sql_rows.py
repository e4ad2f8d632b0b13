"""Rows of a unit test in SQL: a SELECT of literals, validated like a model. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from sqlrun.errors import Problem, ProjectError
from sqlrun.incremental.types import text as type_text
from sqlrun.load.yaml_reader import Reader, did_you_mean, spelled
from sqlrun.parse import parse
from sqlrun.parse.functions import unlike
from sqlrun.parse.source_map import source_place
from sqlrun.project import Model, Rendered
from sqlrun.runtime.text_table import counted
from sqlrun.test_definitions.misfits import misfit
from sqlrun.transpile.trees import place_of

if TYPE_CHECKING:
    from sqlrun.test_definitions.names import Known
    from sqlrun.test_definitions.passages import Passage, Table

LITERALS = "Use literals only: select 1 as id union all select 2."
# Functions that models may call, but rows may not: they have no tick.
CLOCKS = (exp.CurrentTimestamp, exp.CurrentDate)


def checked(reader: Reader, passage: Passage, table: Table, known: Known) -> str:
    """Validate a SELECT of rows, report its problems, and return its text unchanged."""
    rendered = pseudo(passage, passage.padded())
    try:
        tree = parse.check(rendered, {parse.REF: {}, parse.SOURCE: {}}, known.functions)
        problems = list(_problems(rendered, tree, table, known))
    except ProjectError as error:
        problems = [replace(one, hint=LITERALS) if one.code == "SR303" else one for one in error.problems]
    reader.problems.extend(shown(passage, one) for one in problems)
    return passage.text


def pseudo(passage: Passage, text: str, name: str = "rows") -> Rendered:
    """Return any text as a rendered model, to parse it like a model with the same places."""
    model = Model.of_text(name, passage.place.file, text)
    return Rendered(model, text, (), (), tuple(range(1, text.count("\n") + 2)), model.config)


def shown(passage: Passage, problem: Problem) -> Problem:
    """Return a problem with the excerpt of its line in the file."""
    if not passage.exact or problem.place.file != passage.place.file:
        place = passage.place
        return replace(problem, place=place, excerpt=passage.lines[place.line - 1])
    return replace(problem, excerpt=passage.lines[problem.place.line - 1])


def _problems(rendered: Rendered, tree: exp.Query, table: Table, known: Known) -> Iterator[Problem]:
    def at(code: str, node: exp.Expr, message: str, hint: str) -> Problem:
        line, column = place_of(cast(exp.Expression, node))
        place, excerpt = source_place(rendered, line or 1, column or 1)
        return Problem(code, place, message, hint, excerpt)

    for clock in tree.find_all(*CLOCKS):
        yield at("SR119", clock, "rows of a unit test can't use the time of the tick", "Write the time as a literal.")
    for node, why, instead in unlike(tree, known.functions):
        yield at("SR310", node, why, f"{instead} {LITERALS}".strip())
    names = tree.named_selects
    for index, (name, item) in enumerate(zip(names, tree.selects, strict=True)):
        if not isinstance(item, exp.Alias | exp.Column) or isinstance(item.unalias(), exp.Star):
            yield at("SR119", item, "a column of these rows has no name", "Name each column: select 1 as id.")
        elif table.types and spelled(name, table.types) not in table.types:
            hint = f"{table.name} has: {', '.join(table.types)}.{did_you_mean(name, table.types)}"
            yield at("SR112", item, f"unknown column `{name}` of {table.name}", hint)
        elif name in names[:index]:
            yield at("SR119", item, f"duplicate column `{name}`", "Remove one of them.")
    for part in _parts(tree):
        for name, item in zip(names, part.selects, strict=False):
            yield from (
                at(
                    "SR119",
                    node,
                    f"{message} (column `{name}`)",
                    f"Write a value of the type of `{name}` in {table.name}: {kind}.",
                )
                for node, message, kind in _misfits(item.unalias(), table.types.get(spelled(name, table.types), ""))
            )
        if len(part.selects) != len(names):
            message = f"this SELECT has {counted(len(part.selects), 'column')}, but the first has {len(names)}"
            yield at("SR119", part, message, "Give each SELECT of a UNION the same columns.")


def _parts(tree: exp.Query) -> Iterator[exp.Select]:
    """Yield the SELECTs of a UNION."""
    if isinstance(tree, exp.SetOperation):
        yield from _parts(tree.left)
        yield from _parts(tree.right)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        yield from _parts(tree.this)
    elif isinstance(tree, exp.Select):
        yield tree


def _misfits(value: exp.Expr, kind: str) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield a literal that doesn't have its column's type, or the type of its cast."""
    kinds = [kind]
    while isinstance(value, exp.Cast | exp.Paren):
        if isinstance(value, exp.Cast):
            kinds.append(type_text(value.to))
        value = value.this
    known, literal = _literal(value)
    for one in kinds if known else ():
        wrong = misfit(literal, one)
        if wrong is not None:
            yield value, wrong.message, one
            return


def _literal(node: exp.Expr) -> tuple[bool, object]:
    """Return a literal's value; False if the node isn't one."""
    match node:
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return True, f"-{number.name}"
        case exp.Literal(is_string=True):
            return True, node.name
        case exp.Literal():
            try:
                return True, Decimal(node.name)
            except InvalidOperation:
                return False, None
        case exp.Boolean():
            return True, bool(node.this)
        case _:
            return False, None
