"""Admitted functions against Spark's own list: none that Spark lacks, none with another number of arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from sqlrun.parse import unsupported_syntax
from sqlrun.parse.functions import refusal
from sqlrun.transpile import function_arity, function_catalogue
from sqlrun.transpile.dialect import DIALECT

pytestmark = pytest.mark.slow

LISTED_BY_SPARK = Path(__file__).parents[1] / "cases" / "functions" / "spark_functions.txt"
# Keywords of Spark's grammar, which SHOW FUNCTIONS omits.
SYNTAX = {"timestampadd", "timestampdiff", "try_cast"}
# Operators, and functions with keywords between their arguments.
OPERATORS = {"and", "case", "cast", "div", "ilike", "in", "like", "not", "or", "regexp", "rlike", *SYNTAX}


def spark_functions() -> set[str]:
    return {line for line in LISTED_BY_SPARK.read_text().splitlines() if not line.startswith("#")}


def test_every_admitted_function_is_one_of_spark() -> None:
    assert function_catalogue.names() - spark_functions() == SYNTAX


def test_every_admitted_function_has_its_count() -> None:
    assert function_catalogue.names() - function_arity.COUNTS.keys() == OPERATORS
    assert function_arity.COUNTS.keys() <= function_catalogue.names()


def known_to_sqlglot() -> set[str]:
    """Return every name that sqlglot's parser reads as a function."""
    parser = sqlglot.Dialect.get_or_raise(DIALECT).parser_class
    return {name.lower() for name in (*parser.FUNCTIONS, *parser.FUNCTION_PARSERS, *parser.NO_PAREN_FUNCTION_PARSERS)}


def admitted(name: str, count: int) -> bool:
    """Return whether a call passes the parser and the list of functions."""
    try:
        tree = sqlglot.parse_one(f"select {name}({', '.join(['a'] * count)}) from t", read=DIALECT)
    except (ParseError, LookupError, TypeError, ValueError, AttributeError):
        return False
    return all(refusal(call) is None for call in tree.find_all(exp.Func)) and not list(unsupported_syntax.refused(tree))


def test_no_name_is_admitted_that_spark_lacks() -> None:
    """Of all the functions that sqlglot knows from all dialects."""
    names = known_to_sqlglot() - spark_functions() - SYNTAX
    assert len(names) > 200

    assert {name for name in names for count in range(4) if admitted(name, count)} == set()


@pytest.mark.parametrize("count", range(9))
def test_no_call_is_admitted_with_another_number_of_arguments(count: int) -> None:
    names = {name for name in function_arity.COUNTS if not function_arity.takes(name, count)}

    assert {name for name in names if admitted(name, count)} == set()
