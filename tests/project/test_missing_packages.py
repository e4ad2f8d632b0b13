"""A plain install has neither Spark nor Great Expectations: what works without them, and how they are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.evaluate import run_checks
from sqlrun.engines.factory import engine_of
from sqlrun.errors import ProjectError, UsageError
from sqlrun.pipeline import prepare_to_build
from sqlrun.project import Expectation, Profile
from sqlrun.runtime import packages
from sqlrun.scaffold.command import init
from tests.check.test_arrow_counts import AS_OF, PLACE, model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
# Run as `python -c`: hides modules from imports and from find_spec, then runs sqlrun.
HIDDEN = """
import sys
names = {"pyspark", "delta", "py4j", "great_expectations", "pandas", "starlette", "uvicorn", "fastavro", "obstore"}
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
from sqlrun.__main__ import run
sys.exit(run())
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the packages of spark and gx from sqlrun."""
    gone = {"spark": ("pyspark", "delta-spark"), "gx": ("great-expectations", "pandas")}
    monkeypatch.setattr(packages, "missing", lambda extra: gone.get(extra, ()))
    yield


def sqlrun(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDDEN, *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    )


def test_every_extra_is_one_of_the_distribution() -> None:
    """The package names that a message tells are those that pip installs with the extra."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    for extra, names in packages.EXTRAS.items():
        for name in names.values():
            assert any(line.lower().startswith(name) for line in declared[extra]), (extra, name)
    every = declared["all"][0].partition("[")[2].rstrip("]").split(",")
    assert set(every) == set(packages.EXTRAS)
    assert declared["dev"][0] == "sqlrun[all]"


def test_a_missing_package_is_one_line() -> None:
    assert packages.needs("this", "spark") == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packages, "find_spec", lambda name: None)
        packages.missing.cache_clear()
        try:
            with pytest.raises(UsageError) as caught:
                packages.require("`engine: spark`", "spark")
        finally:
            packages.missing.cache_clear()

    assert str(caught.value) == (
        "SR133 `engine: spark` needs the package pyspark, which isn't installed. "
        "Install it: pip install 'sqlrun[spark]'"
    )


def problems(root: Path, profile: str) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        prepare_to_build(root, profile)
    return [f"{one.code} {one.place}: {one.message}. {one.hint}" for one in caught.value.problems]


def test_spark_is_asked_for_before_a_build(tmp_path: Path, bare: None) -> None:
    init(tmp_path / "shop", None)
    prepare_to_build(tmp_path / "shop", "duckdb")

    assert problems(tmp_path / "shop", "spark") == [
        "SR133 profiles/spark.yml:3:9: `engine: spark` needs the package pyspark, which isn't installed. "
        "Install it: pip install 'sqlrun[spark]', or use a profile with engine: duckdb"
    ]
    with pytest.raises(UsageError, match="SR133 `engine: auto`"):
        engine_of(Profile("auto", "auto", str(tmp_path)))


def test_great_expectations_is_asked_for_before_a_build(tmp_path: Path, bare: None) -> None:
    """Once, at the first check that sqlrun doesn't evaluate itself."""
    init(tmp_path / "shop", None)
    suite = tmp_path / "shop" / "expectations" / "marts" / "daily_sales.yml"
    text = suite.read_text()
    suite.write_text(
        f"{text}  - type: expect_table_row_count_to_be_between\n    kwargs: {{min_value: 1}}\n"
        "  - type: expect_column_median_to_be_between\n    kwargs: {column: n_orders, min_value: 0}\n"
    )
    line = len(text.split("\n"))

    (found,) = problems(tmp_path / "shop", "duckdb")
    assert found.startswith(f"SR133 expectations/marts/daily_sales.yml:{line}:")
    assert "`expect_table_row_count_to_be_between` needs the package great-expectations" in found
    assert "(as 1 other here)" in found and "pip install 'sqlrun[gx]'" in found


ROWS = pa.table(
    {
        "tiny": pa.array([1, 1, 2, None, None], pa.int8()),
        "text": ["a", "a", "b", None, None],
        "double": [0.5, 1.5, 0.5, None, float("nan")],
        "money": pa.array([Decimal("1.00")] * 5, pa.decimal128(7, 2)),
    }
)


def checked(kind: str, **kwargs: object) -> tuple[str, int, int]:
    check = Expectation(kind, kwargs, "critical", "fail", "", PLACE)  # type: ignore[arg-type]
    (result,) = run_checks(model(), (check,), Rows(ROWS, ROWS), Terms(AS_OF))
    return result.status.stored, result.unexpected, len(result.samples)


FAILING = [
    ("expect_column_values_to_not_be_null", {"column": "tiny"}, 2),
    ("expect_column_values_to_be_between", {"column": "tiny", "min_value": 2}, 2),
    ("expect_column_values_to_be_in_set", {"column": "text", "value_set": ["a"]}, 1),
    ("expect_column_values_to_be_in_set", {"column": "double", "value_set": [0.5]}, 2),
    ("expect_column_values_to_not_be_in_set", {"column": "double", "value_set": [0.5]}, 2),
    ("expect_column_values_to_be_unique", {"column": "tiny"}, 2),
    ("expect_compound_columns_to_be_unique", {"column_list": ["tiny", "text"]}, 2),
    ("expect_compound_columns_to_be_unique", {"column_list": ["tiny", "text"], "ignore_row_if": "never"}, 4),
    ("expect_column_pair_values_to_be_equal", {"column_A": "tiny", "column_B": "money"}, 3),
]


@pytest.mark.parametrize(("kind", "kwargs", "unexpected"), FAILING)
def test_a_failing_check_is_counted_alone(kind: str, kwargs: dict[str, object], unexpected: int, bare: None) -> None:
    """With the samples that Great Expectations would have found."""
    assert checked(kind, **kwargs) == ("fail", unexpected, unexpected)


@pytest.mark.slow  # Great Expectations is imported
@pytest.mark.parametrize(("kind", "kwargs", "unexpected"), FAILING)
def test_great_expectations_says_the_same(kind: str, kwargs: dict[str, object], unexpected: int) -> None:
    assert checked(kind, **kwargs) == ("fail", unexpected, unexpected)


def test_arguments_in_doubt_are_an_error(bare: None) -> None:
    """Never a pass."""
    assert checked("expect_column_value_lengths_to_equal", column="text", value="1")[0] == "error"


@pytest.mark.slow  # four processes
def test_a_project_lives_without_the_extras(tmp_path: Path) -> None:
    """Modules are hidden here; `test_plain_install.py` has an environment without them."""
    assert sqlrun(tmp_path, "init", "shop").returncode == 0
    shop = tmp_path / "shop"
    (built, shown, served, debug) = (
        sqlrun(shop, *words.split()) for words in ("build", "show daily_sales", "serve", "debug")
    )

    assert built.returncode == 0, built.stdout + built.stderr
    assert "2026-" in shown.stdout, shown.stderr
    assert "SR133 `sqlrun serve` needs the package starlette" in served.stderr + served.stdout
    assert "Not installed: spark, gx, serve, formats, store" in debug.stdout
    assert "All checks passed" in debug.stdout
    spark = sqlrun(shop, "build", "--profile", "spark")
    assert spark.returncode == 2 and "SR133 profiles/spark.yml:3:9" in spark.stdout + spark.stderr
