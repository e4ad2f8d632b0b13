"""Types of columns, and enforced contracts. spark/test_types_spark.py compares the types with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import sqlglot
from sqlglot import exp

from sqlrun.errors import ProjectError
from sqlrun.parse.function_types import FIXED, FIXED_NAMES, SAME, WIDEST
from sqlrun.parse.parse import schema_of
from sqlrun.parse.type_check import infer
from sqlrun.pipeline import prepare
from sqlrun.transpile.spark_types import read as read_type
from tests.support import projects
from tests.support.broken import contract, write
from tests.support.function_cases import FILES as FUNCTIONS
from tests.support.function_cases import compiled
from tests.support.function_cases import read as read_examples
from tests.support.typed_expressions import COLUMNS, TABLES, Typed, read

EXPRESSIONS = read()
# Maximum number of unknown types among 800 expressions; lower it when more become known, never raise it.
MOST_UNKNOWN = 17
# Examples of functions whose types stay unknown: Spark's depends on how sqlrun writes the query, or is an interval, or
# Spark reads a text as a number.
UNKNOWN_EXAMPLES = {
    "arrays_zip(array(1, 2), array('a', 'b'))",
    "arrays_zip(array(1), array('a', 'b'))",
    "nanvl(2, 'a')",
    "shiftleft(cast(-99999.99 as decimal(10,2)), 1)",
    "try_mod(7, 'a')",
    "try_subtract(date '2026-01-02', date '2026-01-01')",
}


def named(one: Typed) -> str:
    (found,) = infer(one.tree(), TABLES)
    return "unknown" if found is None else str(found)


@pytest.mark.slow
def test_expressions_have_sparks_type_or_none() -> None:
    """Each line of cases/types.sql, whose types Spark wrote."""
    wrong = {
        one.text: f"{found}, not {wanted}"
        for one in EXPRESSIONS
        if (found := named(one)) != (wanted := "unknown" if one.unknown else one.spark)
    }

    assert wrong == {}


def test_few_types_are_unknown() -> None:
    assert sum(one.unknown for one in EXPRESSIONS) <= MOST_UNKNOWN
    assert len(EXPRESSIONS) >= 240


@pytest.mark.slow
def test_every_rule_has_an_expression() -> None:
    """Spark is also asked about every function in a table of types."""
    nodes = [node for one in EXPRESSIONS for node in one.tree().walk()]
    kinds = {type(node) for node in nodes}
    names = {node.name.lower() for node in nodes if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc)}

    assert {kind.__name__ for kind in {*FIXED, *SAME, *WIDEST} - kinds} == set()
    assert FIXED_NAMES.keys() - names == set()


@pytest.mark.slow
def test_the_type_of_every_function_is_known() -> None:
    """In each example of cases/functions that has a value."""
    examples = [one for file in FUNCTIONS for one in read_examples(file) if not one.value.startswith("error")]

    assert {one.sql for one in examples if None in infer(cast(exp.Query, compiled([one]).tree), {})} == UNKNOWN_EXAMPLES


@pytest.mark.parametrize(
    ("written", "type_text"),
    [
        ("DECIMAL", "decimal(10,0)"),
        ("numeric(5)", "decimal(5,0)"),
        ("long", "bigint"),
        ("integer", "int"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("map<string, array<struct<a: int>>>", "map<string,array<struct<a:int>>>"),
        ("varchar(10)", "None"),
        ("array<varchar(10)>", "None"),
    ],
)
def test_each_type_has_one_normal_form(written: str, type_text: str) -> None:
    """Contracts may use any of Spark's names for a type."""
    assert str(read_type(written)) == type_text


def test_long_queries_are_typed_in_bounded_time() -> None:
    """A union of 300 has a type; a sum of 3,000 terms is nested too deeply and has none, without a crash."""
    union = sqlglot.parse_one(" union all ".join(["select 1 as x"] * 299 + ["select 1.5 as x"]), read="databricks")
    total: exp.Expr = exp.Literal.number(1)
    for _ in range(3000):
        total = exp.Add(this=total, expression=exp.Literal.number(1))

    assert [str(kind) for kind in infer(cast(exp.Query, union), {})] == ["decimal(11,1)"]
    assert infer(exp.select(exp.alias_(total, "x")), {}) == (None,)


def test_a_query_that_reads_itself_has_the_type_of_its_first_part() -> None:
    sql = "with recursive r as (select 1 as n union all select r.n + 1 as n from r as r) select r.n as n from r as r"

    assert infer(cast(exp.Query, sqlglot.parse_one(sql, read="databricks")), {}) == (read_type("int"),)


@pytest.mark.slow
def test_the_reference_project_is_known_and_enforced() -> None:
    prepared = projects.prepared(projects.ROOT)
    schema = schema_of(prepared.project)
    for query in prepared.queries:
        assert query.rendered.config.enforced
        assert None not in infer(query.tree, schema), query.name


FILES = {
    "seeds/numbers.csv": "id,price\n1,9.50\n",
    "seeds/numbers.yml": contract("numbers", "id", "price decimal(10,2)", extra="    grain: [id]").replace(
        "models:", "seeds:"
    ),
    "models/marts/sums.sql": "select id, price * 2 as price from {{ ref('numbers') }}",
    "models/marts/sums.yml": contract("sums", "id", "price decimal(10,2)", extra="    grain: [id]"),
}
TOML = '[tool.sqlrun]\nname = "small"\n[tool.sqlrun.models'


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (
            "models/marts/sums.yml",
            contract("sums", "id", "price decimal(10,2)", extra="    config: {contract: {enforced: true}}"),
            7,
        ),
        ("models/marts/sums.sql", "{{ config(contract={'enforced': true}) }}" + FILES["models/marts/sums.sql"], 7),
        ("pyproject.toml", f"{TOML}]\ncontract = {{ enforced = true }}\n", 7),
        ("pyproject.toml", f"{TOML}.marts.contract]\nenforced = true\n", 7),
    ],
)
def test_a_contract_is_enforced_in_four_ways(file: str, text: str, line: int, tmp_path: Path) -> None:
    """In the YAML, in the SQL, for a folder, and for all models."""
    prepare(write(tmp_path / "free", FILES))
    with pytest.raises(ProjectError) as caught:
        prepare(write(tmp_path / "enforced", {**FILES, file: text}))
    (problem,) = caught.value.problems

    assert str(problem).startswith(f"SR311 models/marts/sums.yml:{line}:9  column `price` is `decimal(10,2)` in the")
    assert "but `decimal(12,2)`" in problem.message
    assert "Write cast(numbers.price * 2 as decimal(10,2)) as price at models/marts/sums.sql:1:" in problem.hint


def test_a_model_may_say_that_its_contract_is_not_enforced(tmp_path: Path) -> None:
    """The contract overrides the folder."""
    toml = f"{TOML}]\ncontract = {{ enforced = true }}\n"
    free = FILES["models/marts/sums.yml"].replace("grain:", "config: {contract: {enforced: false}}\n    grain:")
    prepared = prepare(write(tmp_path, {**FILES, "pyproject.toml": toml, "models/marts/sums.yml": free}))

    assert not prepared.queries[0].rendered.config.enforced


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("models/marts/sums.yml", "    config: {contract: true}", "SR103"),
        ("models/marts/sums.yml", "    config: {contract: {enforced: 1}}", "SR103"),
        ("models/marts/sums.yml", "    config: {contract: {enforce: true}}", "SR102"),
        ("models/marts/sums.sql", "{{ config(contract=true) }}", "SR205"),
        ("pyproject.toml", "contract = true", "SR103"),
        ("pyproject.toml", "contract = { enforced = 1 }", "SR103"),
    ],
)
def test_a_malformed_contract_setting_is_reported(file: str, text: str, code: str, tmp_path: Path) -> None:
    """None of them counts as "not enforced"."""
    before = FILES.get(file, "")
    whole = {
        "models/marts/sums.yml": contract("sums", "id", "price decimal(10,2)", extra=text),
        "models/marts/sums.sql": text + before,
        "pyproject.toml": f"{TOML}]\n{text}\n",
    }
    with pytest.raises(ProjectError) as caught:
        prepare(write(tmp_path, {**FILES, file: whole[file]}))

    assert code in {problem.code for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("item", "kind"),
    [("null", "string"), ("array()", "array<int>"), ("decode(id, 1, id)", "bigint"), ("price", "varchar(9)")],
)
def test_an_unknown_type_is_not_an_error(item: str, kind: str, tmp_path: Path) -> None:
    """A bare NULL, an empty array, a form of a function without a rule, a type without one."""
    sql = f"{{{{ config(contract={{'enforced': true}}) }}}} select id, {item} as x from {{{{ ref('numbers') }}}}"
    yml = contract("sums", "id", f"x {kind}", extra="    grain: [id]")

    assert prepare(write(tmp_path, {**FILES, "models/marts/sums.sql": sql, "models/marts/sums.yml": yml})).queries


@pytest.mark.slow
def test_every_column_of_the_list_is_used() -> None:
    """A column that no expression reads proves nothing."""
    read_names = {c.name for one in EXPRESSIONS for c in one.tree().find_all(exp.Column)}

    assert COLUMNS.keys() <= read_names
