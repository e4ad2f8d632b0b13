"""sqlrun plan --sql: how the query of a rebuilt table changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.artifacts.test_artifacts import project, run

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a project with a published table that reads a view, and another one."""
    project(
        tmp_path,
        macros__money_sql="{% macro money(column) %}{{ column }} / 100{% endmacro %}",
        models__cheap_sql="{{ config(materialized='view') }}\nselect id, cents from {{ ref('raw') }} where cents < 200",
        models__days_sql="select\n    id,\n    {{ money('cents') }} as amount\nfrom {{ ref('cheap') }}",
        models__other_sql="select count(*) as n from {{ ref('raw') }}",
    )
    assert run(tmp_path, "build", "-q").exit_code == 0
    return tmp_path


def changed(root: Path, *words: str) -> dict[str, list[str]]:
    """Return the changed lines by table."""
    done = run(root, "plan", "--sql", "--json", *words)
    assert done.exit_code == 0, done.output
    tables = json.loads(done.output)["tables"]
    found = {one["name"]: one["query_diff"].splitlines()[2:] for one in tables}
    return {name: [line for line in lines if line[:1] in ("-", "+")] for name, lines in found.items() if lines}


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "lines"),
    [
        ("models/days.sql", "    id,", "    id + 1 as id,", ["-    id,", "+    id + 1 as id,"]),
        ("macros/money.sql", "/ 100", "/ 10", ["-    cents / 100 as amount", "+    cents / 10 as amount"]),
        (
            "models/cheap.sql",
            "< 200",
            "< 300",
            ["-select id, cents from raw where cents < 200", "+select id, cents from raw where cents < 300"],
        ),
    ],
)
def test_an_edit_is_shown(shop: Path, file: str, old: str, new: str, lines: list[str]) -> None:
    assert changed(shop) == {}
    edit(shop, file, old, new)
    assert changed(shop) == {"days": lines}

    assert run(shop, "build", "-q").exit_code == 0
    assert changed(shop) == {}


def test_an_environment_is_compared_with_production(shop: Path) -> None:
    edit(shop, "models/other.sql", "count(*)", "count(id)")

    expected = {"other": ["-select count(*) as n from raw", "+select count(id) as n from raw"]}
    assert changed(shop, "--env", "dev") == expected
    assert run(shop, "build", "-q", "--env", "dev").exit_code == 0
    edit(shop, "models/other.sql", "count(id)", "sum(id)")
    assert changed(shop, "--env", "dev") == {
        "other": ["-select count(id) as n from raw", "+select sum(id) as n from raw"]
    }


def test_without_a_record_it_says_so(shop: Path) -> None:
    """The files are for people: nothing else needs them."""
    shutil.rmtree(shop / "warehouse/_sqlrun/queries")
    edit(shop, "models/other.sql", "count(*)", "count(id)")

    done = run(shop, "plan", "--sql")

    assert "other: the published query isn't recorded" in done.output
    assert run(shop, "build", "-q").exit_code == 0
    edit(shop, "models/other.sql", "count(id)", "count(*)")
    assert list(changed(shop)) == ["other"]


def test_an_edit_of_the_layout_has_the_same_text(shop: Path) -> None:
    (shop / "models/other.yml").write_text(
        "models:\n  - name: other\n    description: Rows.\n    config: {readable_by: pandas}\n"
    )

    assert "other: the query's text is the same" in run(shop, "plan", "--sql").output


def test_a_folder_that_cant_be_written_changes_no_tick(shop: Path) -> None:
    folder = shop / "warehouse/_sqlrun/queries"
    shutil.rmtree(folder)
    folder.write_text("a file")
    edit(shop, "models/other.sql", "count(*)", "count(id)")

    done = run(shop, "build", "-q")

    assert done.exit_code == 0
    assert "can't write the queries of new tables" in done.output
    assert "isn't recorded" in run(shop, "plan", "--sql", "--full-refresh").output
