"""`sqlrun explain` lists a model's checks, those that read the whole table with the reason and the number of rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.commands.build import explain_model
from sqlrun.explain import explain_checks
from sqlrun.project import Suite
from tests.commands.test_check_command import write
from tests.run.test_machine import project
from tests.support.script import START

SUITE = """\
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, min_value: 0}
  - type: expect_table_row_count_to_be_between
    kwargs: {min_value: 1}
    severity: warning
  - type: expect_column_to_exist
    kwargs: {column: amount}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = project(tmp_path / "shops")
    write(root, "profiles/local.yml", "engine: duckdb\nwarehouse: warehouse\n")
    write(root, "expectations/stg_sales.yml", SUITE)
    write(root, "expectations/crowd.sql", "select count(*) as n from {{ ref('stg_sales') }} having count(*) > 9")
    return root


def test_scope_and_cost_of_each_check(root, capsys):
    explain_model(root, "stg_sales", "local", False, START)
    said = capsys.readouterr().out

    assert "checks     1 on changed rows, 1 on rows that share the key of changed ones" in said
    assert "2 on the whole table, 1 on names alone" in said
    assert "expect_table_row_count_to_be_between: the whole table; warning, expectations/stg_sales.yml:4:5" in said
    assert "as it counts all rows: reads every row in each tick that changes the table" in said
    assert "crowd: the whole table; critical, expectations/crowd.sql:1:1" in said
    assert said.index("crowd:") < said.index("expect_column_values_to_be_between(amount): changed rows")

    assert "merge into" not in said and said.endswith("`--sql` prints the statement of each table.\n")
    explain_model(root, "stg_sales", "local", False, START, statements=True)
    in_full = capsys.readouterr().out
    assert "    merge into" in in_full and "--sql" not in in_full

    explain_model(root, "stg_sales", "local", True, START)
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["scope"] for check in checks] == ["key", "row", "table", "schema", "table"]
    assert [check["reads_whole_table"] for check in checks] == [False, False, True, False, True]


def test_rows_are_those_of_the_table(root):
    workspace = pipeline.prepare(root).workspace
    listed = explain_checks.listed(workspace, workspace.model("stg_sales"), 1234)
    assert "reads about 1,234 rows in each tick" in "\n".join(explain_checks.written(listed))
    assert isinstance(workspace.suites["stg_sales"], Suite)
    assert explain_checks.written([]) == ["checks     none"]
