"""`sqlrun check` looks at every row of the published tables: what is right passes, each kind of wrong is found."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.expectations import suggest
from sqlrun.expectations.values import Family, typed
from sqlrun.load import suites
from sqlrun.load.yaml_reader import Reader
from sqlrun.publish.reader import tick_of
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START

pytestmark = pytest.mark.slow

# Of each scope one, each severity one, and a rule of quarantine.
SUITES = {
    "stg_lines": """\
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: version, min_value: 1}
    on_fail: quarantine
""",
    "stg_sales": """\
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, min_value: 0}
    description: Nobody pays less than nothing.
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, max_value: 8}
    severity: warning
  - type: expect_table_row_count_to_be_between
    kwargs: {min_value: 1}
  - type: unexpected_rows_expectation
    kwargs: {unexpected_rows_query: "select * from {batch} where sold_at > current_timestamp()"}
""",
    "mart_hour": """\
expectations:
  - type: expect_column_to_exist
    kwargs: {column: sales}
""",
}


def sale(name: str, version: int, amount: float) -> str:
    at = START.strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"id": name, "version": version, "shop": "Ada's", "amount": amount, "sold_at": at})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ticks of the shops: three sales and a line for the quarantine, then one more."""
    root = project(tmp_path_factory.mktemp("built") / "shops")
    for name, text in SUITES.items():
        write(root, f"expectations/{name}.yml", text)
    write(root, "profiles/local.yml", "engine: duckdb\nwarehouse: warehouse\n")
    contract = root / "models" / "stg_sales.yml"
    contract.write_text(
        contract.read_text()
        .replace("name: shop, data_type: 'string'", "name: shop, tags: [pii], data_type: 'string'")
        .replace("name: id, data_type: 'string'", "name: id, nulls: false, data_type: 'string'")
    )
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", 1, 3), sale("b", 1, 4), sale("c", 1, 5), sale("z", 0, 1)])
    assert site.tick(START).published
    site.write("2.jsonl", [sale("d", 1, 6)])
    assert site.tick(START + FIVE).published
    site.engine.close()
    return root


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "shops")


def run(root: Path, *options: str) -> Result:
    done = CliRunner().invoke(main, ["--project-dir", str(root), "check", "--profile", "local", *options])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done


def statuses(root: Path, *options: str) -> dict[str, list[str]]:
    found: dict[str, Any] = json.loads(run(root, "--json", *options).output)
    return {table["model"]: [check["status"] for check in table["checks"]] for table in found["tables"]}


def tampered(root: Path, model: str, where: str, **values: str) -> None:
    """Change rows behind sqlrun's back, and have the ledger's newest row point there."""
    site = Site(root, DuckDBEngine())
    newest = tick_of(site.ledger)
    state = newest.tables[model]
    path = f"{site.warehouse}/{state.path}"
    DeltaTable(path).update(updates=values, predicate=where)
    tables = {**newest.tables}
    tables[model] = replace(state, version=DeltaTable(path).version())
    pinned = site.ledger.pin(newest.tick + 1, newest.as_of, tables, START, "test")
    site.ledger.publish(newest.tick + 1, newest.as_of, tables, START, "test", pinned)
    site.engine.close()


def test_what_is_right_passes_each_check_once(root: Path) -> None:
    done = run(root)

    assert done.exit_code == 0, done.output
    assert "PASS 6 checks of stg_sales" in done.output
    assert "8 checks of 3 tables at tick 2" in done.output and "8 passed" in done.output
    assert statuses(root) == {"stg_lines": ["pass"], "stg_sales": ["pass"] * 6, "mart_hour": ["pass"]}


def test_all_rows_are_evaluated_not_only_those_of_the_last_tick(root: Path) -> None:
    found = json.loads(run(root, "--json", "--select", "stg_sales").output)

    (table,) = found["tables"]
    assert (table["rows"], {check["evaluated"] for check in table["checks"]}) == (4, {4})
    assert json.loads(run(root, "--json", "--tick", "1", "--select", "stg_sales").output)["tables"][0]["rows"] == 3


def test_quarantined_rows_are_no_part_of_the_table(root: Path) -> None:
    """The rule of quarantine passes, as the row that breaks it was set aside."""
    found = json.loads(run(root, "--json", "--select", "stg_lines").output)

    assert [(t["rows"], t["checks"][0]["status"]) for t in found["tables"]] == [(4, "pass")]


def test_a_critical_failure_is_reported_with_samples_and_ends_with_1(root: Path) -> None:
    tampered(root, "stg_sales", "id = 'a'", amount="-1")

    done = run(root)

    assert done.exit_code == 1
    assert "FAIL 1 expect_column_values_to_be_between stg_sales.amount" in done.output
    assert "Nobody pays less than nothing." in done.output
    assert "Got 1 of 4 rows not as expected" in done.output
    assert "id=a, amount=-1" in done.output
    assert "7 passed, 1 failed" in done.output
    assert run(root, "--tick", "2").exit_code == 0, "the tick before is right still"


def test_a_key_that_is_there_twice_is_found_in_rows_that_no_tick_changed(root: Path) -> None:
    tampered(root, "stg_sales", "id = 'a'", id="'b'")

    assert statuses(root)["stg_sales"].count("fail") == 1
    assert "expect_column_values_to_be_unique stg_sales.id" in run(root).output


def test_a_null_that_a_contract_forbids_is_found(root: Path) -> None:
    tampered(root, "stg_sales", "id = 'a'", id="null")

    done = run(root)
    assert done.exit_code == 1
    assert "FAIL 1 expect_column_values_to_not_be_null stg_sales.id" in done.output


def test_a_warning_is_reported_and_ends_with_0(root: Path) -> None:
    tampered(root, "stg_sales", "id = 'a'", amount="9")

    done = run(root)

    assert done.exit_code == 0
    assert "WARN 1 expect_column_values_to_be_between stg_sales.amount" in done.output
    assert "7 passed, 1 warned" in done.output


def test_what_is_tagged_pii_is_hidden(root: Path) -> None:
    """Also in a column that the contract has no more: what it said of it then isn't known."""
    tampered(root, "stg_sales", "id = 'a'", sold_at="timestamp '2099-01-01T00:00:00Z'")
    done = run(root)
    assert "shop=***" in done.output and "Ada" not in done.output
    contract = root / "models" / "stg_sales.yml"
    contract.write_text("\n".join(line for line in contract.read_text().splitlines() if "shop" not in line) + "\n")
    for name in ("stg_sales", "mart_best", "fct_slots", "mart_hour"):
        for file in (root / "models").glob(f"{name}.*"):
            if name != "stg_sales":
                file.unlink()
    (root / "expectations" / "mart_hour.yml").unlink()
    model = root / "models" / "stg_sales.sql"
    model.write_text(model.read_text().replace("select id, version, shop,", "select id, version,"))

    done = run(root)

    assert done.exit_code == 1
    assert "FAIL 1 unexpected_rows_expectation" in done.output
    assert "stg_sales was edited since" in done.output
    assert "Ada" not in done.output


def test_a_column_that_the_tick_does_not_have_is_an_error(root: Path) -> None:
    """A model that was edited is checked as far as its old table has what the checks ask for."""
    (root / "models" / "stg_sales.sql").write_text(
        (root / "models" / "stg_sales.sql")
        .read_text()
        .replace("amount, sold_at", "amount, 2 * version as twice, sold_at")
    )
    contract = root / "models" / "stg_sales.yml"
    contract.write_text(contract.read_text() + "      - {name: twice, data_type: int, description: It.}\n")
    suite = root / "expectations" / "stg_sales.yml"
    more = (
        "  - type: expect_column_values_to_be_between\n    kwargs: {column: twice, min_value: 2}\n    severity: info\n"
    )
    suite.write_text(suite.read_text() + more)

    done = run(root)

    assert done.exit_code == 1, "an error is never a pass, whatever its severity"
    assert "ERROR expect_column_values_to_be_between stg_sales.twice" in done.output
    assert "the table of tick 2 has no column twice: stg_sales was edited since" in done.output
    assert "8 passed, 1 not evaluated" in done.output


def test_a_table_that_the_tick_does_not_have_is_an_error_for_each_of_its_checks(root: Path) -> None:
    for ending in ("sql", "yml"):
        text = (root / "models" / f"mart_best.{ending}").read_text().replace("mart_best", "mart_new")
        write(root, f"models/mart_new.{ending}", text)
    suite = "expectations:\n" + "  - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 0}}\n" * 2
    write(root, "expectations/mart_new.yml", suite)

    assert statuses(root, "--select", "mart_new") == {"mart_new": ["error", "error"]}
    done = run(root, "--select", "mart_new")
    assert done.exit_code == 1
    assert "tick 2 has no table `mart_new`" in done.output


def test_a_table_that_can_not_be_read_is_an_error(root: Path) -> None:
    site = Site(root, DuckDBEngine())
    state = tick_of(site.ledger).tables["stg_sales"]
    site.engine.close()
    for file in (root / "warehouse" / state.path).rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()

    found = statuses(root)

    assert set(found["stg_sales"]) == {"error"}
    assert found["stg_lines"] == ["pass"]


def test_fail_fast_reports_what_it_left_out(root: Path) -> None:
    tampered(root, "stg_sales", "id = 'a'", amount="-1")

    done = run(root, "--fail-fast")

    assert done.exit_code == 1
    assert "Not evaluated: 1 check of 1 table" in done.output
    assert json.loads(run(root, "--fail-fast", "--json").output)["not_evaluated"] == 1


def test_nothing_to_check_is_said(root: Path) -> None:
    done = run(root, "--select", "mart_best")

    assert done.exit_code == 0
    assert "No selected table has a check" in done.output


ROWS, QUERY = "expect_table_row_count_to_be_between", "unexpected_rows_expectation"


@pytest.mark.parametrize(
    ("words", "types"),
    [
        ("-s test_name:not_null,stg_sales", {"expect_column_values_to_not_be_null"}),
        ("-s stg_sales --exclude test_name:not_null test_name:expect_c*", {ROWS, QUERY}),
        ("-s stg_sales,test_type:singular", {QUERY}),
        ("-s test_name:expect_column_to_exist stg_sales,test_type:singular", {"expect_column_to_exist", QUERY}),
        ("-s test_type:unit", set()),
        ("--selector rows", {ROWS}),
        ("-s selector:rows+1 --exclude mart_hour+", {ROWS}),
    ],
)  # fmt: skip
def test_checks_are_selected_by_name_and_by_type(root: Path, words: str, types: set[str]) -> None:
    (root / "selectors.yml").write_text(
        "selectors:\n  - name: rows\n    definition:\n      intersection:\n        - {method: fqn, value: stg_sales}\n"
        "        - {method: test_name, value: '*row_count*'}\n"
    )
    found = json.loads(run(root, "--json", *words.split()).stdout)

    assert {one["expectation"] for table in found["tables"] for one in table["checks"]} == types


def test_a_test_method_without_a_match_is_an_error(root: Path) -> None:
    wrong = run(root, "-s", "test_name:nut_null")
    assert wrong.exit_code == 2 and "Did you mean `not_null`?" in wrong.output
    assert "`sqlrun test` runs unit tests" in run(root, "-s", "test_type:unit").output


def test_a_tick_that_never_was_is_refused(root: Path) -> None:
    done = run(root, "--tick", "9")

    assert done.exit_code not in (0, 1)
    assert "tick 9 was never published" in done.output


def test_a_suggested_suite_passes_on_its_table(root: Path) -> None:
    """And fails on rows unlike those that it was made from; what the contract says isn't repeated."""
    text = run(root, "--suggest", "stg_lines").output
    write(root, "expectations/stg_lines.yml", text)

    assert """value_set: ["Ada's"]""" in text and "{column: amount, min_value: 3.00, max_value: 6.00}" in text
    assert "{column: sold_at, max_value: {$PARAMETER: as_of}}" in text
    done = run(root, "--select", "stg_lines")
    assert (done.exit_code, "PASS" in done.output, "WARN" in done.output) == (0, True, False), done.output
    tampered(root, "stg_lines", "id = 'a'", amount="7", shop="'Bob''s'", sold_at="timestamp '2099-01-01T00:00:00Z'")
    assert statuses(root, "--select", "stg_lines")["stg_lines"].count("warn") == 3


def test_a_suggested_suite_reveals_no_value_tagged_pii(root: Path) -> None:
    text = run(root, "--suggest", "stg_sales").output

    assert "column: shop}" in text and "Ada" not in text
    assert "column: id}" not in text, "it is never null, and unique"


def test_a_suggestion_for_what_is_no_table_is_refused(root: Path) -> None:
    assert "stg_lines" in run(root, "--suggest", "stg_line").output
    assert run(root, "--suggest", "stg_line").exit_code != 0


ODD = (Decimal("12345678901234567.89"), Decimal("-0.10"), 2**63 - 1, 1e300, 0.1, 5e-324)


@pytest.mark.parametrize("value", ODD, ids=str)
def test_a_suggested_bound_is_the_value_itself(value: Decimal | int | float) -> None:
    """Written and read again as a suite is."""
    text = f"expectations:\n  - {{type: x, kwargs: {{v: {suggest._number(value)}}}}}\n"
    (read,) = suites.suite(Reader("x.yml", text, []), "m").expectations
    families: dict[type, Family] = {Decimal: "decimal", int: "integer", float: "float"}

    assert typed(read.kwargs["v"], families[type(value)]) == value
