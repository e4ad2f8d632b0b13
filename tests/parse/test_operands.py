"""Operators over every pair of types: what Spark refuses is refused before a tick (SR555), and nothing else."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from sqlrun.parse import operand_types, precedence
from sqlrun.parse.type_check import Walk
from sqlrun.transpile.dialect import DIALECT
from tests.support.operands import COLUMNS, read

pytestmark = pytest.mark.slow

TABLES = {"ref": {"t": {"id": "int", **COLUMNS}}}
ALL = read()


def tree(sql: str) -> exp.Query:
    parsed = sqlglot.parse_one(sql, read=DIALECT)
    made = qualify(
        parsed, schema=TABLES, dialect="databricks", quote_identifiers=False, identify=False,
        validate_qualify_columns=False,
    )  # fmt: skip
    assert isinstance(made, exp.Query)
    return made


@pytest.mark.parametrize("part", range(8))
def test_what_spark_refuses_is_refused(part: int) -> None:
    """Each operator with each pair of types, by the verdict of Spark's analyzer."""
    wrong = {
        one.text: [message for _, message, _ in problems]
        for one in ALL[part::8]
        if bool(problems := list(operand_types.found(Walk(tree(one.sql("ref.t")), TABLES)))) == one.taken
    }

    assert wrong == {}


def test_the_file_has_every_pair() -> None:
    assert len(ALL) > 4000
    assert sum(one.taken for one in ALL) > 900


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("case when k + 1 then 1 end", "the condition `t.k + 1` is of type `int`, not boolean"),
        ("k = o", "Spark can't combine `int` and `boolean` in `t.k = t.o`"),
        ("d * 2", "Spark can't compute with `date` and `int` in `t.d * 2`"),
        (
            "coalesce(st, named_struct('z', 1, 'q', 'x'))",
            "Spark can't combine `struct<p:int,q:string>` and `struct<z:int,q:string>` in",
        ),
    ],
)
def test_the_message_has_types_and_sql(text: str, why: str) -> None:
    """The message has the types and the SQL."""
    (problem,) = operand_types.found(Walk(tree(f"select {text} as r from ref.t"), TABLES))

    assert problem[1].startswith(why)


@pytest.mark.parametrize(
    "text",
    [
        "case when o then m else m end", "case k when 1 then m end", "not null", "null and o", "k + null",
        "nullif(k, null)",
        "array(1) = array(null)", "coalesce(array(1), array(2.5))", "struct(1 as a) = struct(1 as b)", "d - d", "d + k",
        "greatest(null, s)", "if(o, null, k)", "s in ('a', null)", "interval 1 day > interval 2 day",
    ],
)  # fmt: skip
def test_what_spark_accepts_is_accepted(text: str) -> None:
    assert list(operand_types.found(Walk(tree(f"select {text} as r from ref.t"), TABLES))) == []


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("k = 1 in (true)", True), ("k in (1) = true", True), ("k in (1) in (true)", True),
        ("k between 0 and 2 = true", True),
        ("s like 'a' = true", True), ("s = 'a' like 'a'", True), ("k = 1 = o", True), ("o = not o", True),
        ("exists (select 1) = o", True), ("k | 1 & 2", True), ("k & 1 << 2", True), ("s || k + 1", True),
        ("(k = 1) in (true)", False), ("k = 1 is null", False), ("not k = 1", False), ("k not in (1)", False),
        ("regexp_like(s, 'a') = o", False), ("contains(s, 'a') = o", False), ("exists(ai, e -> e > 1) = o", False),
        ("s like 'a/%' escape '/'", False), ("s like any ('a', 'b')", False), ("k + 1 || s", False),
        ("s || s || s", False),
        ("k between 1 and 2 and o", False), ("k & 1 = 1", False), ("k | (1 & 2)", False),
    ],
)  # fmt: skip
def test_operators_with_another_precedence_in_spark_need_brackets(text: str, bare: bool) -> None:
    assert bool(list(precedence.found(sqlglot.parse_one(f"select {text}", read=DIALECT)))) == bare
