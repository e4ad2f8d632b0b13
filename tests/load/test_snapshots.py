"""dbt's snapshots in YAML are histories of tables: what is read, what is refused, and what a build makes of one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun import project_files
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import Config, Model
from tests.maintain.test_histories import FIVE, START
from tests.support import broken
from tests.support.projects import Site

ALL = "unique_key: dish_id, strategy: check, check_cols: all"
MENU = {
    "seeds/menu.csv": "dish_id,price,changed_at\n1,9.50,2026-11-01 12:00:00\n2,12.00,2026-11-02 12:00:00\n",
    "seeds/menu.yml": (
        "seeds:\n  - name: menu\n    description: A dish.\n    grain: [dish_id]\n    columns:\n"
        "      - {name: dish_id, data_type: bigint, description: The dish.}\n"
        "      - {name: price, data_type: 'decimal(9,2)', description: EUR.}\n"
        "      - {name: changed_at, data_type: timestamp, description: When.}\n"
    ),
}


def snapshot(config: str, relation: str = "ref('menu')") -> dict[str, str]:
    """Return the file of a snapshot."""
    text = f"version: 2\nsnapshots:\n  - name: menu_snapshot\n    relation: {relation}\n    config: {{{config}}}\n"
    return {"snapshots/deep/menu.yml": text}


def read(folder: Path, config: str, relation: str = "ref('menu')") -> tuple[Model | None, list[str]]:
    """Return the model of a snapshot, and the problems of its project as one line each."""
    loaded = project_files.read(broken.write(folder, {**MENU, **snapshot(config, relation)}))
    model = next((one for one in loaded.project.models if one.name == "menu_snapshot"), None)
    return model, [f"{one.code} {one.message}" for one in loaded.problems]


@pytest.mark.parametrize(
    ("config", "read_as"),
    [
        (ALL, Config(hard_deletes="ignore")),
        ("unique_key: dish_id, strategy: check, check_cols: [all]", Config(hard_deletes="ignore")),
        (ALL.replace("all", "[price]"), Config(check_cols=("price",), hard_deletes="ignore")),
        ("unique_key: [dish_id], strategy: check, check_cols: all, hard_deletes: invalidate", Config()),
        ("unique_key: dish_id, strategy: check, check_cols: all, invalidate_hard_deletes: true", Config()),
        (
            "unique_key: dish_id, strategy: timestamp, updated_at: changed_at, tags: [nightly], "
            "snapshot_meta_column_names: {dbt_valid_from: valid_from, dbt_valid_to: valid_to}",
            Config(updated_at="changed_at", hard_deletes="ignore", tags=("nightly",)),
        ),
    ],
)  # fmt: skip
def test_a_snapshot_is_a_history_of_all_columns(tmp_path: Path, config: str, read_as: Config) -> None:
    model, problems = read(tmp_path, config)

    assert problems == []
    assert model is not None
    assert [column.name for column in model.columns] == [
        "dish_id", "price", "changed_at", "valid_from", "valid_to", "is_current",
    ]  # fmt: skip
    assert model.grain == ("dish_id", "valid_from")
    assert {"materialized": "history"} | {
        name: getattr(read_as, name) for name in ("updated_at", "check_cols", "hard_deletes", "tags")
    } == {
        name: getattr(model.config, name)
        for name in ("materialized", "updated_at", "check_cols", "hard_deletes", "tags")
    }


@pytest.mark.parametrize(
    ("config", "relation", "problem"),
    [
        ("unique_key: dish, strategy: check, check_cols: all", "ref('menu')", "SR108 unknown column `dish`"),
        ("unique_key: dish_id, strategy: check", "ref('menu')", "SR104 a snapshot with `strategy: check`"),
        ("unique_key: dish_id, strategy: timestamp", "ref('menu')", "SR104 a snapshot with `strategy: time"),
        ("unique_key: dish_id, strategy: often", "ref('menu')", "SR110 invalid `strategy`: `often`"),
        ("strategy: check, check_cols: all", "ref('menu')", "SR104 `config` lacks `unique_key`"),
        (ALL, "ref('menus')", "SR202 unknown model in `relation`"),
        (ALL, "source('a', 'b')", "SR203 unknown source in `relation`"),
        (ALL, "menu", "SR110 invalid `relation`: `menu`"),
        (f"{ALL}, hard_deletes: sometimes", "ref('menu')", "SR110 invalid `hard_deletes`: `sometimes`"),
        (
            f"{ALL}, snapshot_meta_column_names: {{dbt_valid_to: until}}",
            "ref('menu')",
            "SR110 a snapshot's columns are named valid_from, valid_to, is_current and is_deleted",
        ),
        (f"{ALL}, dbt_valid_to_current: x", "ref('menu')", "SR102 unknown key"),
    ],
)  # fmt: skip
def test_what_has_no_equal_is_refused(tmp_path: Path, config: str, relation: str, problem: str) -> None:
    _, problems = read(tmp_path, config, relation)

    assert [one for one in problems if one.startswith(problem)], problems


@pytest.mark.slow
def test_a_build_records_a_snapshot(tmp_path: Path) -> None:
    config = "unique_key: dish_id, strategy: timestamp, updated_at: changed_at, hard_deletes: invalidate"
    broken.write(tmp_path, {**MENU, **snapshot(config)})
    assert Site(tmp_path, DuckDBEngine()).tick(START).published
    rows = "dish_id,price,changed_at\n1,9.90,2026-11-20 12:00:00\n3,5.00,2026-11-21 12:00:00\n"
    (tmp_path / "seeds/menu.csv").write_text(rows)
    site = Site(tmp_path, DuckDBEngine())

    assert site.tick(START + FIVE).published

    found = [
        (r["dish_id"], f"{r['valid_from']:%d %H}", r["valid_to"] and f"{r['valid_to']:%d %H:%M}")
        for r in site.rows("menu_snapshot")
    ]
    end = f"{START + timedelta(minutes=5):%d %H:%M}"
    assert sorted(found) == [(1, "01 12", "20 12:00"), (1, "20 12", None), (2, "02 12", end), (3, "21 12", None)]


@pytest.mark.slow
def test_a_snapshot_has_a_version_for_a_deleted_row(tmp_path: Path) -> None:
    """dbt's `new_record`: the version says that the row was gone, until it comes back."""
    broken.write(tmp_path, {**MENU, **snapshot(f"{ALL}, hard_deletes: new_record")})
    csv = tmp_path / "seeds/menu.csv"
    first = csv.read_text()
    assert Site(tmp_path, DuckDBEngine()).tick(START).published
    csv.write_text("".join(line for line in first.splitlines(keepends=True) if not line.startswith("2,")))
    assert Site(tmp_path, DuckDBEngine()).tick(START + FIVE).published
    csv.write_text(first)
    site = Site(tmp_path, DuckDBEngine())
    assert site.tick(START + 2 * FIVE).published

    found = [row for row in site.rows("menu_snapshot") if row["dish_id"] == 2]
    ends = [row["valid_to"] for row in sorted(found, key=lambda row: str(row["valid_from"]))]
    assert [row["is_deleted"] for row in sorted(found, key=lambda row: str(row["valid_from"]))] == [False, True, False]
    assert [f"{end:%H:%M}" if end else None for end in ends] == [
        f"{START + FIVE:%H:%M}",
        f"{START + 2 * FIVE:%H:%M}",
        None,
    ]
