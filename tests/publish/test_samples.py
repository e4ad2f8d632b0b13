"""Samples: an environment over the newest events equals one whose sources have nothing else, and never mixes."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.plan import sampling
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published, TableSample, TableState
from tests.run.test_machine import QUERIES, project
from tests.support import broken
from tests.support.projects import Site
from tests.support.script import START

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
HOUR = timedelta(hours=1)
# A source without a time, beside that of the sales.
NOTES = {
    "models/notes/_sources.yml": (
        "sources:\n  - name: notes\n    tables:\n      - name: lines\n        format: json\n        path: data/notes\n"
        "        columns:\n          - {name: shop, data_type: string}\n          - {name: note, data_type: string}\n"
    ),
    "models/notes/stg_notes.sql": "select shop, note from {{ source('notes', 'lines') }}\n",
    "models/notes/stg_notes.yml": broken.contract("stg_notes", "shop string", "note string"),
}


def line(name: str, at: datetime | None, amount: int = 1) -> str:
    sold_at = "unknown" if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"
    return json.dumps({"id": name, "version": 1, "shop": "x", "amount": f"{amount}.00", "sold_at": sold_at})


# Those of the last 3 hours before START; then older ones, and lines without a time.
RECENT = [
    line("a", START),
    line("b", START - HOUR),
    line("c", START - 3 * HOUR + HOUR / 60),
    line("future", START + HOUR),
]
OLD = [line("old", START - 9 * HOUR), line("edge", START - 3 * HOUR), line("never", None), "{broken", ""]


def shop(folder: Path, *lines: str) -> Path:
    """Write a project whose sales have a time of the event."""
    root = broken.write(project(folder), {"profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n", **NOTES})
    contract = root / "models" / "stg_lines.yml"
    contract.write_text(contract.read_text().replace("repeats: true", "repeats: true\n    event_time: sold_at"))
    (root / "data" / "notes").mkdir()
    (root / "data" / "notes" / "1.jsonl").write_text('{"shop": "x", "note": "hello"}\n')
    (root / "data" / "orders" / "1.jsonl").write_text("".join(f"{one}\n" for one in lines))
    return root


def add(root: Path, name: str, *lines: str) -> None:
    (root / "data" / "orders" / name).write_text("".join(f"{one}\n" for one in lines))


def run(root: Path, *words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["--project-dir", str(root), *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def build(root: Path, *words: str, at: datetime = START, code: int = 0) -> str:
    return run(
        root, "build", "--profile", "local", "--as-of", f"{at:%Y-%m-%dT%H:%M}", "--verbose", *words, code=code
    ).output


def rows(root: Path, env: str = "") -> dict[str, Counter[str]]:
    site = Site(root, DuckDBEngine(), env)
    site.warehouse = str(root / "warehouse")
    site.ledger = type(site.ledger)(site.warehouse, site.prepared.project.name, env)
    found = site.everything()
    site.engine.close()
    return found


def verified(root: Path, *words: str) -> str:
    return run(root, "verify", "--profile", "local", *words).output


def test_a_sample_equals_a_project_that_has_nothing_else(tmp_path: Path) -> None:
    root, alone = shop(tmp_path / "all", *OLD, *RECENT), shop(tmp_path / "recent", *RECENT)
    build(root)
    whole = rows(root)

    said = build(root, "--env", "dev", "--sample", "3h")
    build(alone)

    assert rows(root, "dev") == rows(alone)
    assert rows(root) == whole and whole != rows(alone)
    assert "Environment dev is a sample: events after 2026-03-10 09:00 UTC (--sample 3h)" in said
    assert "notes.lines: read in full, because stg_notes has no `event_time`" in said
    assert "sample" in verified(root, "--env", "dev")
    assert "sample" not in verified(root)


def test_a_sample_needs_no_production(tmp_path: Path) -> None:
    root, alone = shop(tmp_path / "all", *OLD, *RECENT), shop(tmp_path / "recent", *RECENT)
    build(root, "--env", "dev", "--sample", "180m")
    build(alone)

    assert rows(root, "dev") == rows(alone)


def test_later_builds_add_to_the_sample_until_it_has_twice_its_length(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root)
    build(root, "--env", "dev", "--sample", "3h")
    newer = [line("d", START + 2 * HOUR), line("late", START - 2 * HOUR), line("older", START - 5 * HOUR)]
    add(root, "2.jsonl", *newer)

    said = build(root, "--env", "dev", "--sample", "3h", at=START + 2 * HOUR)

    alone = shop(tmp_path / "recent", *RECENT, *newer[:2])
    build(alone, at=START + 2 * HOUR)
    assert rows(root, "dev") == rows(alone)
    assert "after 2026-03-10 09:00" in said and "2 rows" in said
    verified(root, "--env", "dev")

    build(root, "--env", "dev", "--sample", "3h", at=START + 4 * HOUR)
    moved = shop(tmp_path / "moved", newer[0])
    build(moved, at=START + 4 * HOUR)
    assert rows(root, "dev") == rows(moved)
    verified(root, "--env", "dev")


@pytest.mark.parametrize("again", [(), ("--sample", "12h"), ("--sample", "1h")])
def test_another_sample_or_none_never_mixes(tmp_path: Path, again: tuple[str, ...]) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root, "--env", "dev", "--sample", "3h")

    build(root, "--env", "dev", *again)
    build(root, "--env", "fresh", *again)

    assert rows(root, "dev") == rows(root, "fresh")
    verified(root, "--env", "dev")
    build(root, "--env", "dev", "--sample", "3h")
    build(root, "--env", "same", "--sample", "3h")
    assert rows(root, "dev") == rows(root, "same")


def test_production_takes_over_no_table_of_a_sample(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root)
    file = root / "models" / "fct_slots.sql"
    file.write_text(file.read_text().replace("count(*) as sales", "count(amount) as sales"))
    build(root, "--env", "dev", "--sample", "3h")

    said = build(root)

    assert "promoted" not in said
    site_rows = rows(root)
    assert sum(site_rows["stg_lines"].values()) == 6
    verified(root)
    # Without a sample, production takes the table over.
    file.write_text(file.read_text().replace("count(amount) as sales", "count(shop) as sales"))
    build(root, "--env", "dev")
    assert "fct_slots: promoted from dev" in build(root)


def test_a_part_of_a_project_is_never_built_over_other_events(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root)

    said = build(root, "--env", "dev", "--sample", "3h", "--select", "fct_slots", code=2)

    assert "--select +fct_slots" in said
    build(root, "--env", "dev", "--sample", "3h", "--select", "+fct_slots")
    verified(root, "--env", "dev", "--select", "+fct_slots")
    assert "mart_best" in rows(root, "dev")


def test_a_sample_that_is_left_is_marked_until_its_last_table_is_gone(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root)
    file = root / "models" / "mart_best.sql"
    file.write_text(file.read_text().replace("<= 2", "<= 3"))
    build(root, "--env", "dev", "--sample", "3h")

    build(root, "--env", "dev", "--select", "fct_slots")

    assert "--sample 3h" in run(root, "env", "list", "--profile", "local").output
    assert "is a sample" in verified(root, "--env", "dev")
    build(root, "--env", "dev")
    assert "--sample" not in run(root, "env", "list", "--profile", "local").output


def test_commands_show_the_sample(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root)
    assert "events after" in run(root, "plan", "--profile", "local", "--env", "dev", "--sample", "3h").output

    build(root, "--env", "dev", "--sample", "3h")

    assert "(--sample 3h)" in run(root, "env", "list", "--profile", "local").output
    assert "events after 2026-03-10 09:00" in (root / "target" / "report.html").read_text()
    assert "dev is a sample" in run(root, "diff", "--profile", "local", "--env", "dev", "--against", "prod").output
    checked = run(root, "check", "--profile", "local", "--env", "dev").output
    assert "edited" not in checked
    file = root / "models" / "stg_lines.sql"
    file.write_text(file.read_text().replace("version, shop,", "version, upper(shop) as shop,"))
    planned = run(root, "plan", "--profile", "local", "--env", "dev").output
    assert "of its source, it takes all events instead of a sample" in planned


@pytest.mark.parametrize("words", [("--sample", "3h"), ("--env", "prod", "--sample", "3h")])
def test_production_has_no_sample(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = shop(tmp_path / "all", *RECENT)

    assert "SR820" in build(root, *words, code=2)
    assert not (root / "warehouse").exists()


@pytest.mark.parametrize("text", ["3", "3 hours", "0h", "h", "-1h", "3h2m", "3s"])
def test_a_length_is_a_number_and_a_unit(text: str) -> None:
    with pytest.raises(UsageError, match="isn't a length of time"):
        sampling.minutes_of(text, "dev")


def test_where_a_sample_begins() -> None:
    def published(since: datetime, minutes: int = 180) -> Published:
        state = TableState("a/1", 1, START, sample=TableSample(minutes, since))
        return Published(1, START, {"a": state, "b": TableState("b/1", 1, START)})

    new = TableSample(180, START - 3 * HOUR)
    assert sampling.chosen(0, START, published(START)) is None
    assert sampling.chosen(180, START, None) == new
    for hours, is_kept in [(2, False), (3, True), (6, True), (7, False)]:
        before = published(START - hours * HOUR)
        assert (sampling.chosen(180, START, before) == sampling.of_tick(before)) == is_kept
    assert sampling.chosen(180, START, published(START - 4 * HOUR, 240)) == new


def test_quarantined_lines_of_a_sample_are_listed_and_replayed(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT, line("wrong", START).replace('"1.00"', '"much"'))
    build(root, "--env", "dev", "--sample", "3h")

    listed = json.loads(run(root, "quarantine", "list", "--profile", "local", "--env", "dev", "--json").output)

    # Of the lines that can't be read, those without a time aren't in the sample.
    assert [(row["model"], row["waiting"]) for row in listed["queues"]] == [("stg_lines", 1)]
    run(root, "quarantine", "replay", "stg_lines", "--profile", "local", "--env", "dev", "--all")
    build(root, "--env", "dev", "--sample", "3h")
    verified(root, "--env", "dev")
    assert "outside of the sample" in run(root, "source", "audit", "--profile", "local", "--env", "dev").output


def test_a_rollback_returns_to_the_sample(tmp_path: Path) -> None:
    root = shop(tmp_path / "all", *OLD, *RECENT)
    build(root, "--env", "dev", "--sample", "3h")
    sampled = rows(root, "dev")
    build(root, "--env", "dev")
    assert "is a sample" in verified(root, "--env", "dev", "--tick", "1")

    run(root, "rollback", "--profile", "local", "--env", "dev", "--to", "1")

    assert rows(root, "dev") == sampled
    assert "is a sample" in verified(root, "--env", "dev")
    assert "events after 2026-03-10 09:00" in build(root, "--env", "dev", "--sample", "3h", at=START + HOUR)
    assert rows(root, "dev")["stg_lines"] == sampled["stg_lines"]
    verified(root, "--env", "dev")


@pytest.mark.parametrize("number", range(int(os.environ.get("SQLRUN_SAMPLES", "2"))))
def test_any_order_of_builds_has_the_events_of_its_sample(tmp_path: Path, number: int) -> None:
    """The landing table has the lines after the time that the ledger names, and each other table equals its query."""
    chance, at = random.Random(number), START
    root = shop(tmp_path / "all", *OLD)
    events: dict[str, datetime] = {"old": START - 9 * HOUR, "edge": START - 3 * HOUR}
    shared: set[str] = set()  # what production has landed
    name = Site(root, DuckDBEngine()).prepared.project.name
    fct, best = (root / "models" / f"{name}.sql" for name in ("fct_slots", "mart_best"))
    for step in range(7):
        fresh = {f"{step}{n}": at - chance.randrange(400) * HOUR / 60 for n in range(chance.randrange(4))}
        add(root, f"more-{step}.jsonl", *(line(one, event) for one, event in fresh.items()))
        events |= fresh
        match chance.randrange(5):
            case 0:
                build(root, at=at)
                verified(root)
                shared = {*events}
            case 1:
                fct.write_text(f"-- {step}\n" + QUERIES["fct_slots"][0].replace("count(*)", "count(amount)"))
            case 2:
                best.write_text(QUERIES["mart_best"][0].replace("<= 2", f"<= {2 + chance.randrange(3)}"))
            case _:
                pass
        sample = chance.choice([(), ("--sample", "1h"), ("--sample", "3h"), ("--sample", "3h")])
        build(root, "--env", "dev", *sample, at=at)
        verified(root, "--env", "dev")
        found = sampling.of_tick(Ledger(str(root / "warehouse"), name, "dev").read().published)
        assert (found.length if found else None) == (sample[1] if sample else None)
        wanted = {one for one, event in events.items() if found is None or event > found.since}
        # Without a sample, the landing table is production's.
        wanted = shared if shared and found is None else wanted
        landed = rows(root, "dev")["stg_lines"]
        assert {one for one in events if any(f"'id': '{one}'," in row for row in landed)} == wanted
        assert landed.total() == len(wanted)
        at += chance.randrange(5) * HOUR
