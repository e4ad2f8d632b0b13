"""A change log that isn't Debezium's, by the models of docs/howto/land-a-change-log.md: right in any order."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support import pages
from tests.support.projects import Site

pytestmark = pytest.mark.slow

ENGINE = DuckDBEngine()
PAGE = Path(__file__).parents[2] / "docs/howto/land-a-change-log.md"
AT = datetime(2026, 11, 25, tzinfo=timezone.utc)
# A log of operations as AUTO CDC reads it, and changes 5 and 6 in the wrong order. The tables are worked out by hand.
USERS = [
    (124, "Raul", "Oaxaca", "INSERT", 1),
    (123, "Isabel", "Monterrey", "INSERT", 1),
    (125, "Mercedes", "Tijuana", "INSERT", 2),
    (126, "Lily", "Cancun", "INSERT", 2),
    (123, None, None, "DELETE", 6),
    (125, "Mercedes", "Guadalajara", "UPDATE", 6),
    (125, "Mercedes", "Mexicali", "UPDATE", 5),
    (123, "Isabel", "Chihuahua", "UPDATE", 5),
]
TRACKED = "{{ history_rows(ref('user_changes'), key=['user_id'], columns=['name', 'city'], track=['name']) }}\n"
TRUNCATE = (None, None, None, "TRUNCATE", 3)


def site(folder: Path) -> Site:
    """Write the page's files into a project."""
    for path, text in pages.files(PAGE).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "profiles").mkdir()
    (folder / "profiles/duckdb.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    (folder / "pyproject.toml").write_text('[tool.sqlrun]\nname = "log"\nprofile = "duckdb"\n')
    return Site(folder, ENGINE)


def land(made: Site, rows: list[tuple[Any, ...]], sizes: list[int]) -> None:
    """Land changes, so many in each tick."""
    (made.root / "data/users").mkdir(parents=True)
    names = ("user_id", "name", "city", "operation", "sequence")
    events = [dict(zip(names, row, strict=True)) for row in rows]
    for number, size in enumerate(sizes):
        batch, events = events[:size], events[size:]
        text = "".join(f"{json.dumps(event)}\n" for event in batch)
        (made.root / "data/users" / f"{number}.jsonl").write_text(text)
        result = made.tick(AT + timedelta(minutes=5 * number))
        assert result.published, [node.message for node in result.nodes]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_log_of_operations_is_scd_1_and_scd_2(tmp_path: Path, seed: int | None) -> None:
    """The changes come in one tick, or in several, shuffled and some twice."""
    made, rows, sizes = site(tmp_path), list(USERS), [len(USERS)]
    if seed is not None:
        random = Random(seed)
        rows += random.sample(rows, 3)
        random.shuffle(rows)
        sizes = [3, 4, 4]
    land(made, rows, sizes)

    assert sorted((r["user_id"], r["name"], r["city"]) for r in made.rows("users")) == [
        (124, "Raul", "Oaxaca"),
        (125, "Mercedes", "Guadalajara"),
        (126, "Lily", "Cancun"),
    ]
    found = [(r["user_id"], r["city"], r["valid_from"], r["valid_to"]) for r in made.rows("user_history")]
    assert sorted(found, key=lambda r: (r[0], r[2])) == [
        (123, "Monterrey", 1, 5),
        (123, "Chihuahua", 5, 6),
        (124, "Oaxaca", 1, None),
        (125, "Tijuana", 2, 5),
        (125, "Mexicali", 5, 6),
        (125, "Guadalajara", 6, None),
        (126, "Cancun", 2, None),
    ]


def test_a_truncate_removes_what_came_before_it(tmp_path: Path) -> None:
    made = site(tmp_path)
    land(made, [*USERS, TRUNCATE], [5, 4])

    assert [(r["user_id"], r["city"]) for r in made.rows("users")] == [(125, "Guadalajara")]


def versions(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the versions of a log: a version begins with another name, and has the newest city."""
    found, now = list[tuple[Any, ...]](), dict[int, tuple[Any, ...]]()
    for key, name, city, operation, number in sorted(set(rows), key=lambda row: row[-1]):
        ended = [key] if key is not None else list(now)
        if operation in ("INSERT", "UPDATE") and key in now and now[key][1] == name:
            now[key] = (key, name, city, now[key][3], None)
            continue
        found += [(*now.pop(each)[:4], number) for each in ended if each in now]
        if operation in ("INSERT", "UPDATE"):
            now[key] = (key, name, city, number, None)
    return sorted([*found, *now.values()], key=lambda row: (row[0], row[3]))


def tracked(folder: Path, rows: list[tuple[Any, ...]], sizes: list[int]) -> list[tuple[Any, ...]]:
    """Land a log, and return the history that follows the name alone."""
    made = site(folder)
    (folder / "models/marts/user_history.sql").write_text(TRACKED)
    land(Site(folder, made.engine), rows, sizes)
    history = Site(folder, made.engine).rows("user_history")
    assert all(row["is_current"] == (row["valid_to"] is None) for row in history)
    found = [(r["user_id"], r["name"], r["city"], r["valid_from"], r["valid_to"]) for r in history]
    return sorted(found, key=lambda row: (row[0], row[3]))


def test_a_version_begins_where_a_tracked_column_changes(tmp_path: Path) -> None:
    """The example of `TRACK HISTORY ON * EXCEPT (city)` of Spark's declarative pipelines."""
    found = tracked(tmp_path, list(USERS), [3, 5])

    assert found == versions(USERS)
    assert found == [
        (123, "Isabel", "Chihuahua", 1, 6),
        (124, "Raul", "Oaxaca", 1, None),
        (125, "Mercedes", "Guadalajara", 2, None),
        (126, "Lily", "Cancun", 2, None),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_tracked_versions_of_a_random_log_are_those_of_the_log_in_order(tmp_path: Path, seed: int) -> None:
    """Changes come late and twice, keys are deleted and used again, and the table is truncated."""
    random = Random(seed)
    rows: list[tuple[Any, ...]] = []
    for number in range(1, 60):
        operation = random.choices(("INSERT", "UPDATE", "DELETE", "TRUNCATE"), (4, 10, 3, 1))[0]
        row = (random.randint(1, 4), random.choice(("a", "b", None)), random.choice("xyz"))
        empty = {"DELETE": (row[0], None, None), "TRUNCATE": (None, None, None)}
        rows.append((*empty.get(operation, row), operation, number))
    expected = versions(rows)
    rows += random.sample(rows, 8)
    rows.sort(key=lambda row: row[-1] + random.random() * 20)

    assert tracked(tmp_path, rows, [20, 10, 10, 10, 17]) == expected
