"""`--defer`: a build of an environment says which tables of production it reads, and fails where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from tests.publish.test_samples import RECENT, build, rows, run, shop, verified

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]


def edit(root: Path, name: str, before: str, after: str) -> None:
    file = root / "models" / f"{name}.sql"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))


def test_an_edited_model_reads_the_rest_from_production(tmp_path: Path) -> None:
    root = shop(tmp_path, *RECENT)
    build(root)
    edit(root, "fct_slots", "count(*) as sales", "count(amount) as sales")

    said = build(root, "--env", "ci", "--defer", "--select", "fct_slots")

    assert "Read from prod's tick 1: stg_sales\n" in said
    assert "fct_slots" in run(root, "plan", "--profile", "local").output
    assert rows(root, "ci")["stg_sales"] == rows(root)["stg_sales"]
    verified(root, "--env", "ci", "--select", "fct_slots")
    further = build(root, "--env", "ci", "--defer", "--select", "mart_hour")
    assert "Read from ci: fct_slots\n" in further and "Read from prod" not in further


def test_with_manifests_of_production_the_edited_models_are_built(tmp_path: Path) -> None:
    root = shop(tmp_path / "shop", *RECENT)
    build(root)
    run(root, "parse")
    (root / "target" / "manifest.json").rename(tmp_path / "manifest.json")
    edit(root, "fct_slots", "count(*) as sales", "count(amount) as sales")

    said = build(root, "--env", "ci", "--defer", "--state", str(tmp_path), "--select", "state:modified+")

    assert "Read from prod's tick 1: stg_sales\n" in said
    assert "START" in said and "model mart_hour" in said and "model mart_best" not in said


def test_a_table_of_another_meaning_is_never_read(tmp_path: Path) -> None:
    root = shop(tmp_path, *RECENT)
    build(root)
    edit(root, "stg_sales", "amount desc, shop", "amount, shop")

    said = build(root, "--env", "ci", "--defer", "--select", "fct_slots", code=2)

    assert "stg_sales, which was edited" in said and "sqlrun build --select +fct_slots" in said


def test_what_is_read_from_nowhere_is_said(tmp_path: Path) -> None:
    root = shop(tmp_path, *RECENT)
    assert "prod, which has published no tick" in build(root, "--env", "ci", "--defer", code=2)
    build(root)

    assert "Nothing to build: the selected tables are those of prod's tick 1" in build(root, "--env", "ci", "--defer")
    edit(root, "stg_lines", "version, shop,", "version, upper(shop) as shop,")
    assert "Nothing is read from prod" in build(root, "--env", "ci", "--defer")


@pytest.mark.parametrize("env", ["", "prod"])
def test_production_defers_to_nothing(tmp_path: Path, env: str) -> None:
    root = shop(tmp_path, *RECENT)

    done = CliRunner().invoke(main, ["--project-dir", str(root), "build", "--defer"], env={"SQLRUN_ENV": env})

    assert done.exit_code == 2 and "SR821" in done.output and "SQLRUN_ENV=ci" in done.output
