"""Odd names of a project's folder and of its warehouse on Spark: both ticks are right, or nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.engines.spark import session as spark_session
from sqlrun.engines.spark.engine import SparkEngine
from tests.load.test_names import in_folder, require_true, run

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RIGHT = (
    "shop=r9/day=2026-01-01",
    "a b'c\"d:~#&,;(x)!@+$=y`",
    "é日\u2028😀",
    "__HIVE_DEFAULT_PARTITION__",
    "-r",
    "~",
    "100%",
    "_a.b",
)
REFUSED = ("a*b", "a?b", "{y}", "a[b]", "a|b", "a\\b", "a%20b", "a\nb", "^")


@pytest.fixture(autouse=True)
def _one_jvm(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands join the tests' session, and leave it."""
    monkeypatch.setattr(spark_session, "end", lambda _: None)


def on_spark(root: Path, warehouse: str = "warehouse") -> Path:
    made = in_folder(root)
    written = json.dumps(warehouse, ensure_ascii=False).replace("\u2028", "\\u2028")
    (made / "profiles" / "local.yml").write_text(f"engine: spark\nwarehouse: {written}\n", "utf-8")
    return made


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_a_project_in_an_odd_folder_is_right(tmp_path: Path, name: str) -> None:
    require_true(on_spark(tmp_path / name), "by_shop", "shop")


@pytest.mark.long
@pytest.mark.parametrize("name", [*RIGHT[1:3], "-r", "100%"])
def test_an_odd_warehouse_is_right(tmp_path: Path, name: str) -> None:
    root = on_spark(tmp_path / "p", f"w/{name}")
    require_true(root, "by_shop", "shop")

    assert (root / "w" / name / "_sqlrun").is_dir()
    code, output = run(root, "debug")
    assert code == 0, output


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("what", ["folder", "warehouse"])
def test_a_name_that_spark_misreads_is_refused_before_anything_is_written(tmp_path: Path, name: str, what: str) -> None:
    root = on_spark(tmp_path / name) if what == "folder" else on_spark(tmp_path / "p", f"w/{name}")
    before = {file for file in root.rglob("*") if "target" not in file.parts}

    for command in ("build", "debug"):
        code, output = run(root, command)
        assert code != 0 and "SR737" in output, output
    assert {file for file in root.rglob("*") if "target" not in file.parts} == before
