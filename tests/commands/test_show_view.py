"""`sqlrun show` of a view, whose rows no tick stores, and what the commands say that need stored rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.artifacts.test_artifacts import project, run

pytestmark = pytest.mark.slow
VIEW = "models:\n  - name: {}\n    config: {{materialized: view}}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a built project with a view over a table, and a view over that view and the table."""
    project(
        tmp_path,
        models__sales_sql="select 1 as id, 100 as cents union all select 2, 205 union all select 3, 7",
        models__dear_sql="select id, cents, current_date() as today from {{ ref('sales') }} where cents > 50",
        models__dear_yml=VIEW.format("dear"),
        models__pairs_sql=(
            "select a.id as a, b.id as b from {{ ref('dear') }} as a join {{ ref('sales') }} as b on a.id < b.id"
        ),
        models__pairs_yml=VIEW.format("pairs"),
    )
    assert run(tmp_path, "build", "-q").exit_code == 0
    return tmp_path


def shown(root: Path, *words: str) -> list[dict[str, object]]:
    done = run(root, "show", *words, "--output", "json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, object]] = json.loads(done.output)
    return found


def test_the_rows_of_a_view_are_shown(shop: Path) -> None:
    """Those of its query over the tables of the tick, whose time is that of the clock."""
    assert [(row["id"], row["cents"]) for row in shown(shop, "dear")] == [(1, 100), (2, 205)]
    assert [row["id"] for row in shown(shop, "dear", "--where", "Cents > 100 and today is not null")] == [2]
    assert [(row["a"], row["b"]) for row in shown(shop, "pairs")] == [(1, 2), (1, 3), (2, 3)]
    assert [row["type"] for row in shown(shop, "dear", "--types")] == ["int", "int", "date"]
    assert "2 rows of the view dear at tick 1" in run(shop, "show", "dear").output


def test_the_view_is_the_one_of_the_project_now(shop: Path) -> None:
    """Its query isn't a tick's: a build of an edited view changes nothing that is stored."""
    (shop / "models/dear.sql").write_text("select id from {{ ref('sales') }} where cents < 50")

    assert shown(shop, "dear") == [{"id": 3}]


def test_a_view_over_what_no_tick_has_is_explained(shop: Path) -> None:
    """A table, or a column of one, that a build has yet to make."""
    (shop / "models/later.sql").write_text("select 1 as n")
    (shop / "models/ahead.sql").write_text("select n from {{ ref('later') }}")
    (shop / "models/ahead.yml").write_text(VIEW.format("ahead"))
    said = run(shop, "show", "ahead")
    assert said.exit_code == 2
    assert "has no table `later`, which `ahead` reads. Run `sqlrun build` first." in said.output

    (shop / "models/sales.sql").write_text("select 1 as id, 2 as cents, 3 as extra")
    (shop / "models/dear.sql").write_text("select id, extra from {{ ref('sales') }}")
    said = run(shop, "show", "dear")
    assert said.exit_code == 2
    assert "the view dear can't be computed: the tables of this tick lack `sales.extra`. Run `sqlrun build`" in (
        said.output
    )


def test_what_duckdb_cannot_run_is_said_in_the_view_s_text(shop: Path) -> None:
    """A view of a project for Spark may call what DuckDB lacks."""
    (shop / "models/dear.sql").write_text("select id,\n  hash(cents) as h\nfrom {{ ref('sales') }}")

    said = run(shop, "show", "dear")

    assert said.exit_code == 2
    assert "SR310 models/dear.sql:2:3" in said.output


@pytest.mark.parametrize("words", [(), ("--against", "prod", "--env", "dev")])
def test_a_diff_of_a_view_names_what_can_be_compared(shop: Path, words: tuple[str, ...]) -> None:
    """With one tick, with two, and between environments."""
    assert run(shop, "build", "-q", "--env", "dev").exit_code == 0

    said = run(shop, "diff", "pairs", *words)

    assert said.exit_code == 2
    assert said.output == (
        "Error: pairs is a view, and no tick stores its rows. Compare what it reads: `sqlrun diff sales`. "
        "`sqlrun show pairs` prints its rows.\n"
    )


def test_an_unknown_tick_of_a_diff_is_not_explained_by_a_view(shop: Path) -> None:
    """Correcting the project would not help."""
    (shop / "models/wrong.sql").write_text("select nope from {{ ref('sales') }}")

    assert run(shop, "diff", "sales").output == "Error: there is no tick before tick 1 to compare with\n"
    assert run(shop, "diff", "pairs", "--to", "9").output.startswith("Error: tick 9 was never published.")


def test_a_table_is_shown_from_a_project_with_mistakes(shop: Path) -> None:
    """What is published needs no project, but a view's query does."""
    (shop / "models/wrong.sql").write_text("select nope from {{ ref('sales') }}")

    assert len(shown(shop, "sales")) == 3
    said = run(shop, "show", "dear").output
    assert "no table `dear`" in said and "If `dear` is a view, correct the project first" in said
