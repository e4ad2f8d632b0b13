"""A change that is evaluated part by part has the same results as in one piece, in the memory of a part."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sqlrun.check.check_plan import LargeRows, Rows, Terms, ways
from sqlrun.check.chunked import run_large
from sqlrun.check.evaluate import run_checks
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import CheckResult
from sqlrun.maintain import changed_rows
from tests.check.test_quality import (  # fmt: skip
    AS_OF,
    BAD_ROWS,
    BETWEEN,
    COMPOUND,
    CONTROLS,
    GOOD_ROWS,
    IN_SET,
    NOT_NULL,
    PAIR_EQUAL,
    QUERY,
    UNIQUE,
    expect,
    model,
    table,
)
from tests.commands.test_check_command import SUITES, sale, write
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START

# Great Expectations takes seconds to import.
pytestmark = pytest.mark.slow


def change(rows: pa.Table, size: int) -> LargeRows:
    def parts() -> Iterator[pa.Table]:
        for start in range(0, rows.num_rows, size):
            yield rows.slice(start, size)

    def ask(query: str) -> pa.Table:
        connection = duckdb.connect()
        connection.register("keyed", rows)
        return connection.sql(query).to_arrow_table()

    return LargeRows(rows.num_rows, parts, ask, lambda: rows, lambda: rows)


def large(expectations: tuple, rows: LargeRows, *names: str) -> list[CheckResult]:
    ours = model(*names)
    found = run_large(ours, ways(ours, dict(enumerate(expectations))), rows, Terms(AS_OF))
    return [found[place] for place in range(len(expectations))]


def plain(result: CheckResult) -> CheckResult:
    """Return a result without its evaluator and without Great Expectations' own result for the whole change."""
    return replace(result, seconds=0.0, samples=tuple(sorted(result.samples)), raw=None, evaluator="")


def same(expectations: tuple, rows: pa.Table, size: int = 2) -> tuple[CheckResult, ...]:
    in_one = run_checks(model(), expectations, Rows(rows, rows, lambda: rows), Terms(AS_OF))
    in_parts = large(expectations, change(rows, size))
    for one, split in zip(in_one, in_parts, strict=True):
        assert plain(one) == plain(split)
    return in_parts


@pytest.mark.slow
def test_each_kind_has_the_same_result():
    by_rows: dict[int, list] = {}
    tables = {}
    for type_, kwargs, *pair in CONTROLS:
        for rows in pair or (GOOD_ROWS, BAD_ROWS):
            tables[id(rows)] = rows
            by_rows.setdefault(id(rows), []).append(expect(type_, **kwargs))
    statuses = [r.status for key, asked in by_rows.items() for r in same(tuple(asked), tables[key])]
    assert statuses.count("fail") >= len(CONTROLS) - 3 and "pass" in statuses


@pytest.mark.parametrize("mostly", [0.2, 0.5, 0.6, 0.75, 1.0])
def test_a_share_is_of_all_parts(mostly):
    rows = table(
        id=range(9),
        qty=[None, None, 1, 2, 3, 4, -5, -6, None],
        status=["a", "a", None, "b", "b", None, "c", "a", "b"],
        label=["a", "b", None, "b", "c", None, "c", "a", "b"],
    )
    same(
        (
            expect(BETWEEN, column="qty", min_value=0, mostly=mostly),
            expect(BETWEEN, column="qty", min_value=0, mostly=mostly, row_condition="id > 3"),
            expect(NOT_NULL, column="qty", mostly=mostly),
            expect("expect_column_values_to_be_null", column="qty", mostly=mostly),
            expect(IN_SET, column="status", value_set=["a", "b"], mostly=mostly),
            expect(PAIR_EQUAL, column_A="status", column_B="label", mostly=mostly),
            expect(PAIR_EQUAL, column_A="status", column_B="label", mostly=mostly, row_condition="qty is not null"),
            expect(UNIQUE, column="status", mostly=mostly),
            expect(BETWEEN, column="qty", min_value=100, mostly=mostly, row_condition="id > 100"),
        ),
        rows,
    )


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"ignore_row_if": "any_value_is_missing"}, {"ignore_row_if": "never"}, {"row_condition": "id > 1"}],
)
def test_keys_are_counted_as_great_expectations_does(kwargs):
    rows = table(
        id=range(8),
        qty=[1, 1, None, None, None, 2, 2, 3],
        status=["a", "a", None, None, "x", "y", None, "z"],
        price=[0.0, -0.0, 1.0, None, None, 2.0, float("nan"), float("nan")],
    )
    asked = (
        expect(COMPOUND, column_list=["qty", "status"], **kwargs),
        expect(COMPOUND, column_list=["id", "qty"], **kwargs),
        expect(COMPOUND, column_list=["qty", "price"], **kwargs),
    )
    if "ignore_row_if" not in kwargs:
        asked += tuple(expect(UNIQUE, column=name, **kwargs) for name in ("qty", "status", "id", "price"))
    results = same(asked, rows)
    assert {"pass", "fail"} <= {result.status for result in results}


def test_an_error_in_one_part_stays_an_error():
    rows = table(id=range(6), qty=[1, 1, 0, 1, 1, 1], email=["a"] * 6)
    asked = (
        expect(QUERY, unexpected_rows_query="select * from {batch} where 1 / qty > 2"),
        expect(NOT_NULL, column="nowhere"),
        expect(NOT_NULL, column="id", row_condition="1 / qty > 0"),
        expect(NOT_NULL, column="id"),
    )
    results = large(asked, change(rows, 2))
    assert [result.status for result in results] == ["error", "error", "error", "pass"]


def test_samples_are_capped_and_private_ones_hidden():
    rows = table(id=[1] * 100, email=["me@mail.example"] * 100)
    results = same((expect(UNIQUE, column="email"), expect(IN_SET, column="email", value_set=[])), rows, 7)
    assert [(r.unexpected, len(r.samples)) for r in results] == [(100, 20), (100, 20)]
    assert "mail.example" not in str(results)


@pytest.mark.slow
def test_a_tick_with_many_rows_has_the_same_results(tmp_path, monkeypatch):
    said = []
    for name, large in (("small", 250_000), ("large", 2)):
        root = project(tmp_path / name)
        write(root, "profiles/local.yml", "engine: duckdb\nwarehouse: warehouse\n")
        for file, text in SUITES.items():
            write(root, f"expectations/{file}.yml", text)
        monkeypatch.setattr(changed_rows, "LARGE", large)
        site = Site(root, DuckDBEngine())
        site.write("1.jsonl", [sale(f"s{n}", 1, n - 3) for n in range(20)])
        result = site.tick(START)
        site.engine.close()
        said.append([plain(check) for check in result.checks if check.model in ("stg_lines", "stg_sales")])
        assert not result.published and [n.rows for n in result.nodes][:2] == [20, 20]
    assert said[0] == said[1] and any(check.unexpected for check in said[0])


FAILING = """\
import resource, sys, pyarrow as pa
from tests.check.test_large_checks import change, large
from tests.check.test_quality import *
import numpy
n, size = int(sys.argv[1]), 50_000
rows = pa.table({"id": pa.array(numpy.arange(n)), "qty": pa.array(numpy.full(n, -1, "int32"))})
asked = (expect(BETWEEN, column="qty", min_value=0), expect(BETWEEN, column="id", max_value=-1),
         expect(QUERY, unexpected_rows_query="select * from {batch} where qty < 0"))
large(asked, change(rows.slice(0, size), size), "id", "qty")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = large(asked, change(rows, size), "id", "qty")
assert [(r.unexpected, r.evaluated, len(r.samples)) for r in found] == [(n, n, 20)] * 3
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_memory_stays_flat_when_all_rows_fail():
    ran = subprocess.run(
        [sys.executable, "-c", FAILING, "1000000"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 150, "MB more than for the first part"


KEYS = """\
expectations:
  - type: expect_column_values_to_be_unique
    kwargs: {column: amount}
  - type: expect_compound_columns_to_be_unique
    kwargs: {column_list: [shop, amount], row_condition: "version = 1"}
"""


@pytest.mark.slow
@pytest.mark.parametrize("large", [250_000, 1])
def test_a_key_other_than_the_grain_is_checked_over_the_whole_table(tmp_path, monkeypatch, large):
    """A row of an earlier tick with the value of a new one isn't part of the change, but it is found."""
    monkeypatch.setattr(changed_rows, "LARGE", large)
    root = project(tmp_path / "shops")
    write(root, "profiles/local.yml", "engine: duckdb\nwarehouse: warehouse\n")
    write(root, "expectations/stg_sales.yml", KEYS)
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", 1, 3), sale("b", 1, 4), sale("c", 1, 5)])
    first = site.tick(START)
    site.write("2.jsonl", [sale("d", 1, 6), sale("e", 1, 4)])
    second = site.tick(START + FIVE)
    site.engine.close()

    assert first.published and not second.published
    found = [(c.status, c.unexpected) for c in second.checks if c.model == "stg_sales"]
    assert found == [("pass", 0), ("fail", 2), ("fail", 2)]
    assert all("id=b" in str(c.samples) for c in second.checks if c.status == "fail")
