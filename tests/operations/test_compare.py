"""Tables of two environments compared, against a plain count in Python."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import sqlrun
from tests.artifacts.test_artifacts import project, run

pytestmark = pytest.mark.slow
SEED = "id,shop,cents\n1,a,100\n2,a,205\n3,b,7\n4,,9\n"
TYPED = (
    "seeds:\n  - name: raw\n    grain: [id]\n    columns:\n      - {name: id, data_type: int}\n"
    "      - {name: shop, data_type: string}\n      - {name: cents, data_type: int}\n"
)
KEYED = (
    "models:\n  - name: sales\n    grain: [id]\n    columns:\n      - {name: id, data_type: int}\n"
    "      - {name: shop, data_type: string}\n      - {name: cents, data_type: int}\n"
)
EDITED = (
    "select id + if(id = 4, 5, 0) as id, shop, cents + if(shop = 'a', 1, 0) as cents from {{ ref('raw') }} where id > 1"
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a project with production, and an environment in which two models were edited."""
    project(
        tmp_path,
        seeds__raw_csv=SEED,
        seeds__raw_yml=TYPED,
        models__sales_sql="select id, shop, cents from {{ ref('raw') }}",
        models__sales_yml=KEYED,
        models__bag_sql="select shop, cents as amount from {{ ref('raw') }}",
        models__same_sql="select count(*) as n from {{ ref('raw') }}",
        models__gone_sql="select id from {{ ref('raw') }}",
    )
    assert run(tmp_path, "build", "-q").exit_code == 0
    (tmp_path / "models/sales.sql").write_text(EDITED)
    (tmp_path / "models/bag.sql").write_text(
        "select shop, cast(cents as bigint) as amount, id as extra from {{ ref('raw') }}"
    )
    (tmp_path / "models/same.sql").write_text("select count(id) as n from {{ ref('raw') }}")
    (tmp_path / "models/gone.sql").unlink()
    (tmp_path / "models/new.sql").write_text("select id from {{ ref('raw') }} where id > 2")
    assert run(tmp_path, "run", "--env", "dev", "-q").exit_code == 0
    return tmp_path


def compared(root: Path, *words: str) -> dict[str, dict[str, object]]:
    done = run(root, "diff", "--env", "dev", "--against", "prod", "--output", "json", *words)
    assert done.exit_code == 0, done.output
    return {row["name"]: row for row in json.loads(done.output)}


def bags(root: Path, name: str, columns: tuple[str, ...]) -> tuple[Counter[object], Counter[object]]:
    warehouse = str(root / "warehouse")
    sides = (sqlrun.published(name, warehouse), sqlrun.published(name, warehouse, env="dev"))
    before, after = (Counter(tuple(row[c] for c in columns) for row in side.to_pylist()) for side in sides)
    return before, after


def test_every_table_is_counted(shop: Path) -> None:
    found = compared(shop)
    before, after = bags(shop, "sales", ("id", "shop", "cents"))

    assert set(found) == {"raw", "sales", "bag", "same", "gone", "new"}
    assert found["raw"]["shared"] is True
    assert (found["same"]["same"], found["same"]["shared"]) == (True, False)
    sales = found["sales"]
    assert sales["rows"] == [before.total(), after.total()] == [4, 3]
    assert (sales["left"], sales["came"]) == ((before - after).total(), (after - before).total()) == (3, 2)
    assert sales["share"] == (before & after).total() / (before | after).total()
    assert sales["keys"] == {"left": 2, "came": 1, "changed": 1, "columns": [["cents", 1]]}
    assert found["gone"]["rows"] == [4, None]
    assert found["new"]["rows"] == [None, 2]
    bag = found["bag"]
    assert bag["columns"] == ["+ extra int", "amount int -> bigint"]
    assert (bag["left"], bag["came"], bag["keys"]) == (0, 0, None)


def test_the_text_has_what_differs(shop: Path) -> None:
    done = run(shop, "diff", "--env", "dev", "--against", "prod")

    assert done.exit_code == 0
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "sales 4 -> 3 2 1 1 16.7 %" in lines
    assert "gone 4 all" in lines
    assert "new 2 all" in lines
    assert "bag: columns + extra int, amount int -> bigint" in lines
    assert "sales: changed cents in 50.0 %" in lines
    assert lines[-1] == "Tables that differ: 4, with the same rows: 1, shared: 1."


def test_one_table_shows_rows(shop: Path) -> None:
    done = run(shop, "diff", "sales", "--env", "dev", "--against", "prod", "--output", "json")
    before, after = bags(shop, "sales", ("id", "shop", "cents"))

    rows = json.loads(done.output)
    found = {mark: Counter((r["id"], r["shop"], r["cents"]) for r in rows if r["change"] == mark) for mark in "+-"}
    assert found == {"-": before - after, "+": after - before}
    limited = run(shop, "diff", "sales", "--env", "dev", "--against", "prod", "--limit", "2")
    assert "first 2 rows only in dev (+) or only in prod (-)" in limited.output


def test_a_project_with_mistakes_is_compared_without_its_grains(shop: Path) -> None:
    (shop / "models/sales.sql").write_text("select nonsense from")

    done = run(shop, "diff", "--env", "dev", "--against", "prod")

    assert done.exit_code == 0
    assert "The project has mistakes" in done.output
    assert "sales: has no grain, so rows are compared as a whole" in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "--against NAME"),
        ("--against prod", "is the same on both sides"),
        ("--against nope", "unknown environment `nope`"),
        ("sale --env dev --against prod", "Did you mean `sales`?"),
        ("sales --env dev --against prod --from 7", "tick 7 was never published"),
    ],
)
def test_a_mistake_is_reported(shop: Path, words: str, says: str) -> None:
    done = run(shop, "diff", *words.split())

    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
