"""Names of columns in queries: half of the columns of all cases are renamed, and each query stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlrun.errors import ProjectError
from sqlrun.graph.column_names import ROOT, Names, Symbol, applied
from sqlrun.graph.nameless import nameless
from sqlrun.graph.sql_words import UnclearError, words_to_rename
from sqlrun.parse import parse
from sqlrun.project import Config, Model, Rendered
from sqlrun.transpile.dialect import DIALECT
from tests.support import case_files
from tests.support.case_files import Case

CASES = Path(__file__).parent.parent / "cases"
FILES = sorted((CASES / "incremental").glob("*.case"))
NEW = "zz_new"


def rendered(case: Case, sql: str) -> Rendered:
    """Return a view of a case as a model, with refs instead of the names of tables."""
    names = [table.name for table in case.tables]
    tree = sqlglot.parse_one(sql, read=DIALECT)
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name in names and table.name not in ctes:
            alias = table.alias_or_name
            table.set("db", exp.to_identifier(parse.REF))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    text = tree.sql(DIALECT)
    return Rendered(Model.of_text("v", "v.sql", text), text, tuple(names), (), (1,), Config())


def linked(names: Names, start: Symbol) -> set[Symbol]:
    found, left = set[Symbol](), [start]
    while left:
        symbol = left.pop()
        if symbol not in found:
            found.add(symbol)
            left += names.links.get(symbol, ())
    return found


def columns(schema: parse.Schema) -> dict[str, list[str]]:
    return {f"{parse.REF}.{name}": list(known) for name, known in schema[parse.REF].items()}


def outcomes(case: Case, sql: str) -> Iterator[str]:
    """Yield what became of every other column of a query and of its tables after its rename."""
    item = rendered(case, sql)
    schema: parse.Schema = {parse.REF: {table.name: dict(table.columns) for table in case.tables}, parse.SOURCE: {}}
    try:
        tree = parse.qualified(item, schema)
    except ProjectError:  # it reads another view
        return
    names = Names(item, tree)
    asked = [(Symbol(f"{parse.REF}.{table.name}", one), one) for table in case.tables for one, _ in table.columns]
    asked += [(Symbol(ROOT, one), one) for one in tree.named_selects]
    for symbol, old in asked[len(sql) % 2 :: 2]:
        chosen = linked(names, symbol)
        if chosen & names.joined:
            yield "using"
            continue
        text = applied(item.sql, names.edits(chosen, old, NEW))
        tables = {
            name: {NEW if Symbol(f"{parse.REF}.{name}", one) in chosen else one: kind for one, kind in known.items()}
            for name, known in schema[parse.REF].items()
        }
        after: parse.Schema = {parse.REF: tables, parse.SOURCE: {}}
        try:
            now = parse.qualified(replace(item, sql=text), after)
        except ProjectError as error:
            yield f"{case.place} {old}: {error}: {text}"
            continue
        expected = [NEW if Symbol(ROOT, one) in chosen else one for one in tree.named_selects]
        same = nameless(tree, columns(schema)) == nameless(now, columns(after)) and now.named_selects == expected
        yield "same" if same else f"{case.place} {old}: {text}"


def counted(cases: Iterable[Case]) -> Counter[str]:
    return Counter(outcome for case in cases for view in case.views for outcome in outcomes(case, view.sql))


@pytest.mark.parametrize("part", range(4))
@pytest.mark.slow
def test_columns_of_all_cases_can_be_renamed(part: int) -> None:
    found = counted(case for file in FILES[part::4] for case in case_files.read(file))

    assert found.keys() <= {"same", "using"}
    assert found["same"] > 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from {batch} where total < 0 and `total` <> 'total' -- total",
         "select * from {batch} where x < 0 and x <> 'total' -- total"),
        ('col("total") > 0 and name <> "total"', 'col("x") > 0 and name <> "total"'),
        ("total(total) = Total", "total(x) = x"),
    ],
)  # fmt: skip
def test_words_of_a_text_that_name_a_column(text: str, expected: str) -> None:
    for start, length in sorted(words_to_rename(text, "total", "x"), reverse=True):
        text = text[:start] + "x" + text[start + length :]

    assert text == expected


def test_a_text_that_is_unclear() -> None:
    with pytest.raises(UnclearError, match="names `x` already"):
        list(words_to_rename("total > x", "total", "x"))
    with pytest.raises(UnclearError, match="has `date`, which is also a word of SQL"):
        list(words_to_rename("cast(date as date) > 1", "date", "x"))
    with pytest.raises(UnclearError, match="can't be read"):
        list(words_to_rename("total > 'x", "total", "x"))
