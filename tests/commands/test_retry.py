"""`sqlrun retry`: the last build again, if its tick was not published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.commands.retry import last_build
from sqlrun.errors import UsageError


@pytest.fixture
def cafe(tmp_path: Path) -> Path:
    root = tmp_path / "cafe"
    CliRunner().invoke(main, ["init", str(root)])
    return root


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), *words])


def written(root: Path, **args: Any) -> None:
    (root / "target").mkdir(exist_ok=True)
    (root / "target" / "run_results.json").write_text(json.dumps({"args": {"which": "build", **args}}))


@pytest.mark.slow
def test_a_failed_build_is_repeated_with_its_selection(cafe: Path) -> None:
    """A check fails; its rule is mended; the retry builds what the first build was asked for."""
    suite = cafe / "expectations" / "marts" / "daily_sales.yml"
    good = suite.read_text()
    suite.write_text(good.replace("min_value: 0", "min_value: 1000000"))
    assert run(cafe, "build", "--select", "+daily_sales", "--as-of", "2026-11-20T12:00").exit_code == 1
    assert run(cafe, "retry").exit_code == 1
    suite.write_text(good)
    done = run(cafe, "retry")

    assert done.exit_code == 0, done.output
    assert "Tick 3 published: as_of 2026-11-20 12:00 UTC" in done.output
    args = json.loads((cafe / "target" / "run_results.json").read_text())["args"]
    assert args["select"] == ["+daily_sales"]
    again = run(cafe, "retry")
    assert (again.exit_code, again.output) == (0, "The last build published its tick: there is nothing to retry.\n")


def test_a_killed_build_is_repeated(tmp_path: Path) -> None:
    """Its results have its options and no outcome."""
    environment = {"env": "dev", "sample": "3h", "defer": True}
    written(tmp_path, select=["a"], exclude=["b"], as_of="2026-11-20", accept_lost_files=True, step="5m", **environment)

    assert last_build(tmp_path) == {"select": ("a",), "exclude": ("b",), "as_of": "2026-11-20"} | environment


def test_a_tick_without_a_time_of_its_own_is_repeated_now(tmp_path: Path) -> None:
    written(tmp_path, published=False, tick=3, as_of="2026-11-20T12:05:00+00:00", threads=4)

    assert last_build(tmp_path) == {"threads": 4}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"args": 3}', '{"args": {"which": "run"}}'])
def test_results_of_something_else_are_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "run_results.json").write_text(text)

    with pytest.raises(UsageError, match=r"isn't that of a build of sqlrun. Run `sqlrun build`"):
        last_build(tmp_path)


def test_without_results_there_is_nothing_to_retry(cafe: Path) -> None:
    done = run(cafe, "retry")

    assert done.exit_code == 2 and "no build has written target/run_results.json" in done.output
