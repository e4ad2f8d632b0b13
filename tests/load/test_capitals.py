"""Names of columns in YAML match those of queries regardless of case, as in Spark; each column has one spelling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.errors import ProjectError
from sqlrun.pipeline import Prepared
from tests.artifacts.test_artifacts import project, run

SEED = """seeds:
  - name: shops
    grain: [shopID]
    columns:
      - {name: ShopId, data_type: int}
      - {name: Name, data_type: string}
"""
SALES = """select Id, string(cents) as Label, cents as Cents, Id as ShopId, timestamp('2026-01-01') as SoldAt
from {{ ref('raw') }}"""
CONTRACT = """models:
  - name: sales
    grain: [ID]
    event_time: soldAT
    config: {partition_by: [SHOPID]}
    columns:
      - {name: iD, data_type: int, data_tests: [unique, not_null]}
      - {name: LABEL, data_type: string, description: A label., tags: [pii]}
      - {name: Cents, data_type: int, nulls: false, data_tests: [{accepted_values: {values: [100, 205]}}]}
      - name: shopId
        data_type: int
        data_tests: [{relationships: {to: ref('shops'), field: SHOPid}}]
      - {name: SoldAt, data_type: timestamp}
unit_tests:
  - name: each_form_of_rows
    model: sales
    given:
      - input: ref('raw')
        rows: [{ID: 1, Cents: 5}]
    expect:
      rows: [{Id: 1, label: "5", CENTS: 5, ShopId: 1}]
  - name: rows_as_text
    model: named
    given:
      - input: ref('shops')
        format: csv
        rows: |
          SHOPID,name
          1,a
      - input: ref('raw')
        format: sql
        rows: select 1 as ID, 5 as cents
    expect:
      rows: [{SHOP: a}]
"""
SUITE = """expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: CENTS, min_value: 0, row_condition: Id > 0}
  - type: expect_compound_columns_to_be_unique
    kwargs: {column_list: [Id, LABEL]}
  - type: expect_column_pair_values_a_to_be_greater_than_b
    kwargs: {column_A: Cents, column_B: ID}
  - type: expect_table_columns_to_match_set
    kwargs: {column_set: [Id, Label, Cents, ShopId, SoldAt]}
  - type: unexpected_rows_expectation
    kwargs: {unexpected_rows_query: "select * from {batch} where CENTS < 0"}
"""
NAMED = "select Name as Shop from {{ ref('shops') }} join {{ ref('raw') }} on SHOPID = Id"
EXPOSURE = """exposures:
  - name: shops
    type: application
    description: What each shop may see.
    depends_on: [ref('sales')]
    config: {serve: {owned_by: ShopId, keys: [ID]}}
    owner: {name: Sales}
"""


def shop(folder: Path, **changed: str) -> Prepared:
    files = {
        "seeds__shops_csv": "ShopId,Name\n1,a\n2,b\n", "seeds__shops_yml": SEED, "models__sales_sql": SALES,
        "models__sales_yml": CONTRACT, "expectations__sales_yml": SUITE, "models__named_sql": NAMED,
        "models___exposures_yml": EXPOSURE,
    }  # fmt: skip
    return project(folder, **{**files, **changed})


def test_a_contract_with_capitals_is_that_of_the_query(tmp_path: Path) -> None:
    """The columns have the query's spelling, and each key of the contract names them so."""
    made = shop(tmp_path)
    model = next(model for model in made.project.models if model.name == "sales")

    assert [column.name for column in model.columns] == ["id", "label", "cents", "shopid", "soldat"]
    assert (model.grain, model.event_time, model.config.partition_by) == (("id",), "soldat", ("shopid",))
    assert model.columns[1].description == "A label." and not model.columns[2].nullable
    assert next(seed.grain for seed in made.project.seeds if seed.name == "shops") == ("ShopId",)


@pytest.mark.slow
def test_a_build_checks_columns_with_capitals(tmp_path: Path) -> None:
    """Expectations, tests of the contract, unit tests and what is served."""
    shop(tmp_path)
    done = run(tmp_path, "build")

    assert done.exit_code == 0, done.output
    assert "PASS 2 unit tests" in done.output and "WARN=0 ERROR=0" in done.output
    assert json.loads(run(tmp_path, "show", "sales", "--where", "ID = 1 and Cents > 1", "--output", "json").output) == [
        {"id": 1, "label": "100", "cents": 100, "shopid": 1, "soldat": "2026-01-01T00:00:00Z"}
    ]
    assert "sales.cents" in run(tmp_path, "lineage", "sales.CENTS").output


def test_an_open_contract_may_have_capitals(tmp_path: Path) -> None:
    """Columns that aren't listed are inferred."""
    contract = (
        "models:\n  - name: sales\n    grain: [Id]\n    event_time: SoldAt\n    columns:\n      - {name: LABEL}\n"
    )
    made = shop(tmp_path, models__sales_yml=contract)
    model = next(model for model in made.project.models if model.name == "sales")

    assert [column.name for column in model.columns] == ["id", "label", "cents", "shopid", "soldat"]
    assert (model.grain, model.event_time) == (("id",), "soldat")


def test_a_history_may_have_capitals(tmp_path: Path) -> None:
    """Also one that dbt's YAML declares over a seed whose columns have capitals."""
    contract = """models:
  - name: named
    config: {materialized: history, check_cols: [SHOP]}
    grain: [ShopId, Valid_From]
    columns:
      - {name: ShopId, data_type: int}
      - {name: Shop, data_type: string}
      - {name: Valid_From, data_type: timestamp}
      - {name: VALID_TO, data_type: timestamp}
      - {name: Is_Current, data_type: boolean}
"""
    snapshot = """snapshots:
  - name: shop_history
    relation: ref('shops')
    config: {unique_key: ShopID, strategy: check, check_cols: [NAME]}
"""
    made = shop(
        tmp_path, models__sales_yml=CONTRACT.split("unit_tests")[0], models__named_yml=contract,
        models__named_sql="select ShopId, Name as Shop from {{ ref('shops') }}", snapshots__shops_yml=snapshot,
    )  # fmt: skip
    found = {model.name: model for model in made.project.models}

    assert found["named"].grain == ("shopid", "valid_from")
    assert found["shop_history"].grain == ("shopid", "valid_from")
    assert found["shop_history"].config.check_cols == ("name",)


def test_one_column_has_one_entry(tmp_path: Path) -> None:
    """Two spellings are the same column, and a wrong name is shown as it was written."""
    twice = CONTRACT.replace("LABEL, data_type", "ID, data_type")
    with pytest.raises(ProjectError, match=r"SR109 .* duplicate column `ID`"):
        shop(tmp_path / "a", models__sales_yml=twice)
    with pytest.raises(ProjectError, match=r"SR109 .* `grain` lists `iD` twice"):
        shop(tmp_path / "b", models__sales_yml=CONTRACT.replace("grain: [ID]", "grain: [ID, iD]"))
    with pytest.raises(ProjectError, match="unknown column `Idd` in `grain`"):
        shop(tmp_path / "c", models__sales_yml=CONTRACT.replace("grain: [ID]", "grain: [Idd]"))
