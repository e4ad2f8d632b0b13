"""Promises of contracts in dbt's words: accepted values and other tables' keys, checked in each tick."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun import project_files
from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.events import CheckResult, TickResult
from sqlrun.pipeline import prepare
from sqlrun.runtime.disk_cache import Cache
from tests.run.test_machine import project
from tests.support import broken
from tests.support.projects import Site
from tests.support.script import FIVE, START

SHOPS = """\
seeds:
  - name: shops
    description: All shops.
    grain: [shop]
    columns:
      - {name: shop, data_type: string, description: The shop., nulls: false}
"""
TO_SHOPS = "data_tests: [{relationships: {to: ref('shops'), field: shop}}]"


def promising(root: Path, model: str, column: str, promise: str) -> None:
    """Add a promise to a column's contract."""
    file = root / "models" / f"{model}.yml"
    old = file.read_text()
    new = old.replace(f"name: {column}, ", f"name: {column}, {promise}, ")
    assert new != old
    file.write_text(new)


def shops(root: Path, *names: str) -> None:
    broken.write(root, {"seeds/shops.yml": SHOPS, "seeds/shops.csv": "shop\n" + "".join(f"{n}\n" for n in names)})


def sale(name: str, shop: str | None, at: datetime = START, amount: float = 1) -> str:
    sold_at = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"id": name, "version": 1, "shop": shop, "amount": amount, "sold_at": sold_at})


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Shops x and y, as a seed and in the sales."""
    made = project(tmp_path / "shops")
    shops(made, "x", "y")
    yield made


def of_type(result: TickResult, kind: str = "relationships") -> CheckResult:
    (found,) = [check for check in result.checks if check.type == kind]
    return found


def again(site: Site) -> Site:
    """Return the same warehouse with the project as it is now."""
    return Site(site.root, site.engine)


@pytest.mark.slow
def test_an_unknown_key_blocks_publishing(root: Path) -> None:
    """Nothing below is built, readers see the previous tick, and the key's arrival fixes it."""
    promising(root, "stg_sales", "shop", TO_SHOPS)
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", "x"), sale("b", "y")])
    assert site.tick(START).published
    before = site.everything()
    site.write("2.jsonl", [sale("c", "q"), sale("d", "q"), sale("e", "x")])

    failed = site.tick(START + FIVE)

    check = of_type(failed)
    assert not failed.published and check.status == "fail"
    assert (check.model, check.columns, check.evaluated, check.unexpected) == ("stg_sales", ("shop",), 3, 2)
    assert check.samples == ("id=c, shop=q", "id=d, shop=q")
    assert {n.name for n in failed.nodes if n.status == "skipped"} >= {"fct_slots", "mart_hour", "mart_best"}
    assert site.everything() == before
    shops(root, "x", "y", "q")
    site = again(site)
    assert site.tick(START + 2 * FIVE).published
    assert len(site.rows("stg_sales")) == 5


@pytest.mark.slow
def test_a_key_that_leaves_is_noticed_although_no_row_changed(root: Path) -> None:
    """Old rows count too, each once, as do those that changed in the same tick."""
    promising(root, "stg_sales", "shop", TO_SHOPS)
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", "x"), sale("b", "y"), sale("c", "y")])
    assert site.tick(START).published
    shops(root, "x")
    site = again(site)

    check = of_type(site.tick(START + FIVE))

    assert (check.status, check.evaluated, check.unexpected) == ("fail", 2, 2)
    site.write("2.jsonl", [sale("d", "y"), sale("e", "x"), sale("f", "q")])
    check = of_type(site.tick(START + 2 * FIVE))
    assert (check.evaluated, check.unexpected) == (4, 4)
    shops(root, "x", "y", "q")
    assert again(site).tick(START + 3 * FIVE).published


@pytest.mark.slow
def test_the_other_table_may_be_neither_above_nor_below(root: Path) -> None:
    """The check waits for it; here the clock alone deletes its rows. Its warning is reported and the tick published."""
    warn = "data_tests: [{relationships: {to: ref('mart_hour'), field: shop, config: {severity: warn}}}]"
    promising(root, "mart_best", "shop", warn)
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", "x"), sale("b", "y")])
    assert of_type(site.tick(START)).status == "pass"

    late = site.tick(START + 13 * FIVE)

    assert late.published
    assert (of_type(late).status, of_type(late).severity, of_type(late).unexpected) == ("warn", "warning", 2)


@pytest.mark.slow
def test_a_landing_table_and_a_table_of_its_own_keys(root: Path) -> None:
    """NULL needs no partner; dbt's foreign_key is a relationship; a table may refer to itself."""
    promising(root, "stg_lines", "shop", "constraints: [{type: foreign_key, to: ref('shops'), to_columns: [shop]}]")
    promising(root, "stg_sales", "id", "data_tests: [{relationships: {arguments: {to: ref('stg_sales'), field: id}}}]")
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", "x"), sale("b", "y")])

    result = site.tick(START)

    assert result.published
    assert [(c.model, c.status) for c in result.checks if c.type == "relationships"] == [
        ("stg_lines", "pass"),
        ("stg_sales", "pass"),
    ]
    site.write("2.jsonl", [sale("c", "q")])
    assert of_type_in(site.tick(START + FIVE), "stg_lines").unexpected == 1


def of_type_in(result: TickResult, model: str) -> CheckResult:
    (found,) = [check for check in result.checks if check.type == "relationships" and check.model == model]
    return found


@pytest.mark.slow
def test_accepted_values_are_a_check_of_each_tick_and_of_whole_tables(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promising(root, "stg_sales", "shop", "data_tests: [{accepted_values: {values: [x, y]}}, " + TO_SHOPS[13:])
    site = Site(root, DuckDBEngine())
    broken.write(root, {"profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n"})
    site.write("1.jsonl", [sale("a", "x"), sale("b", "y")])
    assert site.tick(START).published
    site.write("2.jsonl", [sale("c", "q")])

    failed = site.tick(START + FIVE)

    check = of_type(failed, "expect_column_values_to_be_in_set")
    assert (failed.published, check.status, check.unexpected) == (False, "fail", 1)
    monkeypatch.chdir(root)
    said = CliRunner().invoke(main, ["check", "--json"])
    assert said.exit_code == 0, said.output
    found = {c["expectation"]: c for t in json.loads(said.output)["tables"] for c in t["checks"]}
    assert found["relationships"]["status"] == found["expect_column_values_to_be_in_set"]["status"] == "pass"
    assert found["relationships"]["evaluated"] == 2


WRONG = {
    "SR202": ("stg_sales", "shop", "data_tests: [{relationships: {to: ref('shop'), field: shop}}]"),
    "SR705": ("stg_sales", "shop", "data_tests: [{relationships: {to: ref('shops'), field: name}}]"),
    "SR713": ("stg_sales", "version", TO_SHOPS),
    "SR715": ("stg_sales", "shop", "data_tests: [{relationships: {to: ref('mart_best'), field: shop}}]"),
    "SR110 .*invalid `to`: `shops`": ("stg_sales", "shop", "data_tests: [{relationships: {to: shops, field: shop}}]"),
    "SR104 .*lacks `field`": ("stg_sales", "shop", "data_tests: [{relationships: {to: ref('shops')}}]"),
    "SR102 .*`feild`": ("stg_sales", "shop", "data_tests: [{relationships: {to: ref('shops'), feild: shop}}]"),
    "SR104 .*lacks `values`": ("stg_sales", "shop", "data_tests: [accepted_values]"),
    "SR103 .*`values`": ("stg_sales", "shop", "data_tests: [{accepted_values: {values: x}}]"),
    "SR713 .*not a number": ("stg_sales", "version", "data_tests: [{accepted_values: {values: [one]}}]"),
    "SR110 .*invalid `severity`: `fatal`": (
        "stg_sales",
        "shop",
        "data_tests: [{accepted_values: {values: [x], config: {severity: fatal}}}]",
    ),
    "SR110 .*`dbt_utils.at_least_one`": ("stg_sales", "shop", "data_tests: [dbt_utils.at_least_one]"),
    "SR110 .*don't run on a column": ("_sources", "shop", "data_tests: [{accepted_values: {values: [x]}}]"),
}


@pytest.mark.parametrize("said", WRONG)
@pytest.mark.slow
def test_a_promise_that_cannot_be_held_is_a_problem_with_its_place(root: Path, said: str) -> None:
    model, column, promise = WRONG[said]
    promising(root, model, column, promise)
    line = next(
        n for n, text in enumerate((root / "models" / f"{model}.yml").read_text().splitlines(), 1) if promise in text
    )

    with pytest.raises(ProjectError, match=said) as caught:
        prepare(root)

    assert {(p.place.file, p.place.line) for p in caught.value.problems} == {(f"models/{model}.yml", line)}


@pytest.mark.slow
def test_a_view_promises_nothing(root: Path) -> None:
    """Neither about itself nor to others: it has no rows that change."""
    broken.write(root, {"pyproject.toml": (root / "pyproject.toml").read_text()})
    promising(root, "fct_slots", "shop", "data_tests: [{relationships: {to: ref('stg_sales'), field: shop}}]")
    file = root / "models" / "stg_sales.yml"
    plain = file.read_text().replace("    grain: [id]\n", "").replace(", nulls: false", "")
    plain = plain.replace("    columns:", "    config: {materialized: view}\n    columns:", 1)
    for text, place in ((plain, "models/fct_slots.yml"), (plain.replace("name: id,", "name: id, nulls: false,"), "")):
        file.write_text(text)
        with pytest.raises(ProjectError) as caught:
            prepare(root)
        assert [(p.code, p.place.file) for p in caught.value.problems] == [("SR715", place or "models/stg_sales.yml")]


def test_the_cache_hides_no_problem(root: Path) -> None:
    """A second run takes the contracts from the cache after the seed's column was removed."""
    promising(root, "stg_sales", "shop", TO_SHOPS)
    first = prepare(root, Cache.of(root))
    assert [e.type for e in prepare(root, Cache.of(root)).project.models[-1].columns[2].promises] == [
        e.type for e in first.project.models[-1].columns[2].promises
    ]
    seed = {
        "seeds/shops.yml": SHOPS.replace("shop,", "name,").replace("[shop]", "[name]"),
        "seeds/shops.csv": "name\nx\n",
    }
    broken.write(root, seed)

    with pytest.raises(ProjectError, match="SR705"):
        prepare(root, Cache.of(root))


@pytest.mark.parametrize(
    ("promise", "code"),
    [
        ("data_tests: [{not_null: {where: n > 0}}]", "SR102"),
        ("data_tests: [{unique: {config: {limit: 3}}}]", "SR102"),
        ("data_tests: [{unique: {config: {severity: warn}}}]", "SR110"),
        ("data_tests: [{not_null: {}, unique: {}}]", "SR110"),
        ("data_tests: [{not_null: true}]", "SR103"),
        ("data_tests: [{not_null: {config: {enabled: false}}}]", "SR102"),
        ("data_tests: [{accepted_values: {values: [x], quote: false}}]", "SR102"),
        ("data_tests: [{accepted_values: {values: [x], config: {warn_if: '>3'}}}]", "SR102"),
        ("data_tests: [{relationships: {to: ref('a'), field: id, where: x}}]", "SR102"),
        ("data_tests: [{my_own_test: {}}]", "SR110"),
    ],
)
def test_an_unsupported_argument_is_refused(tmp_path: Path, promise: str, code: str) -> None:
    """Also of words without arguments: a dropped condition or limit would promise more than was meant."""
    written = broken.contract("a", extra="    grain: [id]").replace("name: id, ", f"name: id, {promise}, ")
    broken.write(tmp_path, {"models/a.sql": "select 1 as id", "models/a.yml": written})

    problems = project_files.read(tmp_path).problems

    assert code in {problem.code for problem in problems}


def test_not_null_may_be_a_warning(tmp_path: Path) -> None:
    """Then NULL doesn't fail the tick, and the column may contain it."""
    promise = "data_tests: [{not_null: {config: {severity: warn}}}]"
    written = broken.contract("a").replace("name: id, ", f"name: id, {promise}, ")
    broken.write(tmp_path, {"models/a.sql": "select 1 as id", "models/a.yml": written})
    (column,) = project_files.project(tmp_path).models[0].columns
    assert column.nullable
    assert [(one.type, one.severity, one.on_fail) for one in column.promises] == [
        ("expect_column_values_to_not_be_null", "warning", "warn")
    ]
