"""Regular expressions that aren't valid are refused before an engine reads them; Java's own verdicts decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.errors import ProjectError, UsageError
from sqlrun.expectations.sql import batch_query, condition_tree
from sqlrun.parse.where_clause import condition
from sqlrun.transpile.patterns import fault
from tests.artifacts.test_artifacts import project, run

# What java.util.regex.Pattern of Java 17 compiles, and what not.
VALID = [
    "", "a", "(a)", "^*", "$*", r"\b+", "a{2}{3}", "{2}", "[]a]", "}", "]", "a{1001}", "()", r"[\w-z]", "[a-[b]]",
    "a*+", "a??", "a{2,}?", r"\Q(\E", "(?<x>b)", "(?i)a", r"\p{Alpha}", "[(]", r"\(", r"\[", r"a\{x", "[{]", "[a&&[b]]",
    "(?>a)", r"\\", "[^a]", "(?=x)", r"\z", r"\h", "a|", "|a",
]  # fmt: skip
INVALID = [
    "(", "[", "a**", "\\", "x{2,1}", "*a", "a{,3}", "[z-a]", "a)", "+", "?", "|*", "a{2", "(*a)", "[]", "[^]", "(a|*b)",
    "a|?", "(?:*)", "(?:a|+)", "x{2,1}?", "a{", "a{x}", "a+*", r"\\(", r"\\\\*+*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", VALID)
def test_a_pattern_that_java_reads_is_valid(pattern: str) -> None:
    """Whether or not Python and RE2 read it."""
    assert fault(pattern) == ""


@pytest.mark.parametrize("pattern", INVALID)
def test_a_pattern_that_java_refuses_is_invalid(pattern: str) -> None:
    """With a reason in words."""
    assert fault(pattern)


@pytest.mark.parametrize(
    "call",
    ["name rlike '('", "regexp_like(name, '(')", "name regexp '('", "size(split(name, '(')) > 1",
     "regexp_replace(name, '(', '') = ''", "regexp_extract(name, '(', 0) = ''", "regexp_count(name, '(') > 0",
     "regexp_instr(name, '(') > 0", "regexp_substr(name, '(') = ''", "size(regexp_extract_all(name, '(', 0)) > 0"],
)  # fmt: skip
def test_each_function_and_each_place_of_a_pattern_is_checked(call: str, tmp_path: Path) -> None:
    """A model for both engines, the condition of a command, and the checks."""
    said = "the pattern '(' isn't a valid regular expression: `(` has no `)`"
    sql = f"select id from (select id, string(cents) as name from {{{{ ref('raw') }}}})\nwhere {call}"
    with pytest.raises(ProjectError, match="SR553") as found:
        project(tmp_path, models__a_sql=sql)
    (problem,) = found.value.problems

    assert (problem.message, problem.place.line) == (said, 2)
    with pytest.raises(UsageError) as refused:
        condition(call, {"name": "string"})
    assert str(refused.value).startswith(f"--where: {said}")
    with pytest.raises(ValueError, match="isn't a valid regular expression"):
        condition_tree(call)
    with pytest.raises(ValueError, match="isn't a valid regular expression"):
        batch_query(f"select * from {{batch}} where {call}")


def test_a_pattern_of_java_that_duckdb_does_not_read_is_called_so(tmp_path: Path) -> None:
    """It isn't a matter of types."""
    project(tmp_path, models__a_sql="select id from {{ ref('raw') }} where string(cents) rlike 'a{1001}'")
    said = run(tmp_path, "build").output

    assert "SR310" in said and "invalid repetition size: {1001}" in said
    assert "Write another pattern: DuckDB's are RE2's, not Java's." in said and "Cast" not in said
