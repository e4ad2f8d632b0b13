"""Quarantined lines land after a fix: once, with any failure, and the marts are as if they had always been valid."""

from __future__ import annotations

import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Engine, Merge
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import TickResult
from sqlrun.land import quarantine_log, replay
from sqlrun.land.relanding import LOST
from sqlrun.maintain import checksums
from sqlrun.operations.verify import verify
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.shops import (
    NAME,
    NEGATIVE,
    UNKNOWN,
    by_shop,
    discards,
    edit,
    quarantine_rows,
    run,
    sale,
    send,
    site,
    sums,
    waiting,
)

pytestmark = [pytest.mark.usefixtures("unchecked"), pytest.mark.slow]

GOOD = (sale("1"), sale("2", "bob"), sale("4", amount="2.50"))
EVES = (sale("3", "eve", "4.00"), sale("7", "eve", "0.25"), sale("7", "eve", "0.25"))
OWING = sale("5", "ada", "-1.00")
MILDER = ("[ada, bob]", "[ada, bob, eve]")


class Stop(Exception):
    """A crash at a chosen moment."""


def two_ticks(folder: Path, engine: Engine | None = None) -> Site:
    """Three valid sales, three of an unknown shop (two of them the same line), a negative one and a truncated line."""
    made = site(folder, engine)
    send(made, "0.jsonl", GOOD[0], GOOD[1], EVES[0], "{cut off")
    assert made.tick(START).published
    send(made, "1.jsonl", GOOD[2], OWING, *EVES[1:])
    assert made.tick(START + FIVE).published
    assert by_shop(made) == sums(*GOOD)
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, unchecked: None) -> Path:
    """Made once; each test has its own copy."""
    return two_ticks(tmp_path_factory.mktemp("built") / "shops").root


@pytest.fixture
def made(built: Path, tmp_path: Path) -> Site:
    return Site(shutil.copytree(built, tmp_path / "shops"), DuckDBEngine())


def tick(made: Site, number: int = 2) -> TickResult:
    return made.tick(START + number * FIVE)


def note(result: TickResult) -> str:
    return next(node for node in result.nodes if node.name == NAME).stages[-1].note


def path(made: Site) -> str:
    return tick_of(made.ledger).tables[NAME].path


def is_true(made: Site) -> None:
    """Check that each table equals its query over the landed rows, and its checksum."""
    published = tick_of(made.ledger)
    names = ("by_shop", NAME)
    assert all(verdict.ok for verdict in verify(made.prepared.workspace, made.warehouse, published, names, 5))
    assert all(found.ok for found in checksums.compare(made.warehouse, published, names))


def test_replayed_lines_land_like_late_lines(made: Site) -> None:
    """After the rule is fixed and the lines are replayed, the table and the marts are as if it had always been so."""
    before = path(made)
    fixed = edit(made, *MILDER)
    result = tick(fixed)
    assert result.published and path(fixed) == before
    assert "3 lines are" not in note(result) and "5 lines are in quarantine" in note(result)
    assert by_shop(fixed) == sums(*GOOD)

    assert "evaluates 3 lines" in run(fixed, "quarantine", "replay", NAME, "--reason", UNKNOWN)
    assert {row["state"] for row in quarantine_rows(fixed, "show", NAME, "--reason", UNKNOWN)} == {"replay asked"}
    assert {row["reason"]: row["asked"] for row in quarantine_rows(fixed, "list")}[UNKNOWN] == 3
    result = tick(fixed, 3)

    assert result.published and path(fixed) == before
    assert note(result) == "stg_sales: replayed 3 lines of the quarantine: 3 came in"
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    assert Counter(row["id"] for row in fixed.rows(NAME)) == Counter(["1", "2", "4", "3", "7", "7"])
    assert waiting(fixed) == {NEGATIVE: 1, "not a JSON object": 1}
    assert {row["reason"]: row["replayed"] for row in quarantine_rows(fixed, "list") if row["replayed"]} == {UNKNOWN: 3}
    is_true(fixed)


def test_a_replayed_line_lands_once(made: Site) -> None:
    """With two requests before the build, another after it, and another build: nothing is there twice."""
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert "evaluates 0 lines" in run(fixed, "quarantine", "replay", NAME, "--all")
    assert tick(fixed).published
    assert "no pending line of stg_sales" in run(fixed, "quarantine", "replay", NAME, "--reason", UNKNOWN, code=2)
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert "2 still quarantined" in note(tick(fixed, 3))
    result = tick(fixed, 4)
    assert result.published and note(result) == ""

    assert by_shop(fixed) == sums(*GOOD, *EVES)
    assert waiting(fixed) == {NEGATIVE: 1, "not a JSON object": 1}
    is_true(fixed)


def test_lines_that_are_still_invalid_get_the_current_reason(made: Site) -> None:
    """They are reported, stay pending, and may be replayed again; one that the query filters out leaves the table."""
    send(made, "2.jsonl", sale("test", "zoe", "1.00"))
    edited = edit(made, "There are two shops.", "Nobody knows this shop.")
    assert tick(edited).published  # the query filters out the source's test line
    run(edited, "quarantine", "replay", NAME, "--all")
    result = tick(edited, 3)

    again = f"{UNKNOWN.replace('There are two shops.', 'Nobody knows this shop.')}"
    assert "5 still quarantined" in note(result) and f"{again} (3)" in note(result)
    assert waiting(edited) == {again: 3, NEGATIVE: 1, "not a JSON object": 1}
    assert by_shop(edited) == sums(*GOOD)
    fixed = edit(edited, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--reason", again)
    assert tick(fixed, 4).published
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    is_true(fixed)


def test_removed_rules_and_stricter_rules(made: Site) -> None:
    """Without its rule a line lands by a replay; a stricter rule lands everything from scratch."""
    free = edit(made, "min_value: 0}", "min_value: -5}")
    run(free, "quarantine", "replay", NAME, "--reason", NEGATIVE)
    assert tick(free).published
    assert by_shop(free) == sums(*GOOD, OWING)
    before = path(free)

    strict = edit(free, "min_value: -5}", "min_value: 2}")
    planned = run(strict, "plan")
    assert "3 landed rows break a rule that was edited" in planned and "rebuilt" in planned
    assert tick(strict, 3).published
    assert path(strict) != before
    assert by_shop(strict) == sums(GOOD[2])
    assert waiting(strict) == {NEGATIVE: 3, UNKNOWN: 3, "not a JSON object": 1}
    is_true(strict)


def test_a_plan_reports_rules_that_do_not_rebuild_the_table(made: Site) -> None:
    assert "new rules  stg_sales" in run(edit(made, *MILDER), "plan")


def test_an_edited_query_validates_all_lines_again(made: Site) -> None:
    """Its table is rebuilt from the files, which completes a requested replay and is reported so."""
    run(made, "quarantine", "replay", NAME, "--all")
    edited = edit(edit(made, *MILDER), "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    result = tick(edited)

    assert result.published
    assert "3 landed again, 2 still quarantined" in note(result)
    assert by_shop(edited) == sums(*GOOD, *EVES)
    assert waiting(edited) == {NEGATIVE: 1, "not a JSON object": 1}
    is_true(edited)


def test_lines_that_land_from_scratch_leave_the_queue_on_record(made: Site) -> None:
    """Without a request: the log has lines that the new table accepts, and lines that were lost with their file."""
    (made.orders / "1.jsonl").unlink()
    edited = edit(edit(made, *MILDER), "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    run(edited, "quarantine", "replay", NAME, "--reason", NEGATIVE)
    assert not tick(edited).published  # it would lose lines
    assert edited.tick(START + 2 * FIVE, accept_lost=True).published

    assert by_shop(edited) == sums(GOOD[0], GOOD[1], EVES[0])
    rows = {row["reason"]: row for row in quarantine_rows(edited, "list")}
    assert {reason: row["replayed"] for reason, row in rows.items() if row["replayed"]} == {UNKNOWN: 1}
    assert {reason: row["discarded"] for reason, row in rows.items() if row["discarded"]} == {UNKNOWN: 2, NEGATIVE: 1}
    assert {row["because"] for row in discards(edited)} == {LOST}
    assert waiting(edited) == {"not a JSON object": 1}


def test_lines_of_deleted_files_can_be_replayed(made: Site) -> None:
    """The text is in the table: a rule may be fixed, and its lines replayed, long after the files were deleted."""
    for file in made.orders.iterdir():
        file.unlink()
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")

    assert tick(fixed).published
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    is_true(fixed)


def points() -> dict[str, Any]:
    """Return the points at which a replaying tick is interrupted."""

    def after_the_merge(patched: pytest.MonkeyPatch, made: Site) -> None:
        real = made.engine.write

        def writing(request: Any) -> Any:
            done = real(request)
            if isinstance(request.statement, Merge) and request.table.name == NAME:
                raise Stop
            return done

        patched.setattr(made.engine, "write", writing)

    def before(home: Any, name: str) -> Any:
        def stop(patched: pytest.MonkeyPatch, made: Site) -> None:
            def stopping(*_: Any, **__: Any) -> None:
                raise Stop

            patched.setattr(home, name, stopping)

        return stop

    def after_the_record(patched: pytest.MonkeyPatch, made: Site) -> None:
        real = quarantine_log.append

        def appending(*args: Any) -> None:
            real(*args)
            raise Stop

        patched.setattr(quarantine_log, "append", appending)

    return {
        "before the merge": before(replay, "_write"),
        "after the merge": after_the_merge,
        "after the record": after_the_record,
        "before the pin": before(Ledger, "pin"),
        "before publishing": before(Ledger, "publish"),
    }


@pytest.mark.parametrize("point", points())
def test_an_interrupted_replay_is_completed_once(made: Site, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """No line is lost or doubled, readers see the previous tick until all is there, and the log has the outcome."""
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    send(fixed, "2.jsonl", sale("8"))
    with monkeypatch.context() as patched:
        points()[point](patched, fixed)
        with pytest.raises(Stop):
            tick(fixed)
    assert by_shop(fixed) == sums(*GOOD)
    assert tick(fixed, 3).published

    assert by_shop(fixed) == sums(*GOOD, *EVES, sale("8"))
    assert waiting(fixed) == {NEGATIVE: 1, "not a JSON object": 1}
    assert {row["reason"]: row["replayed"] for row in quarantine_rows(fixed, "list") if row["replayed"]} == {UNKNOWN: 3}
    assert tick(fixed, 4).published
    assert by_shop(fixed) == sums(*GOOD, *EVES, sale("8"))
    is_true(fixed)


def test_a_rule_of_a_failed_tick_has_no_effect(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that an unpublished tick accepted by relaxed rules are validated by the restored rules."""
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    with monkeypatch.context() as patched:
        points()["before publishing"](patched, fixed)
        with pytest.raises(Stop):
            tick(fixed)
    back = edit(fixed, MILDER[1], MILDER[0])

    assert tick(back, 3).published
    assert by_shop(back) == sums(*GOOD)
    assert waiting(back) == {UNKNOWN: 3, NEGATIVE: 1, "not a JSON object": 1}
    is_true(back)


def test_rules_apply_before_anything_is_published(tmp_path: Path) -> None:
    """Rows of a failed first tick were validated by its rules: stricter ones land them from scratch."""
    made = site(tmp_path)
    send(made, "0.jsonl", *GOOD, OWING)
    with pytest.MonkeyPatch.context() as patched:
        points()["before publishing"](patched, made)
        with pytest.raises(Stop):
            made.tick(START)
    strict = edit(made, "min_value: 0}", "min_value: 2}")

    assert strict.tick(START).published
    assert by_shop(strict) == sums(GOOD[2])
    assert waiting(strict) == {NEGATIVE: 3}


def test_ticks_resume_after_a_replay_of_too_many_lines(made: Site) -> None:
    """A fault is planted, nothing is published, the rule is fixed, the lines are replayed, and all is correct."""
    limited = edit(made, "expectations:\n", "max_quarantined: 10%\nexpectations:\n")
    send(limited, "2.jsonl", sale("8"), *(sale(f"e{n}", "eve", "3.00") for n in range(4)))
    assert not tick(limited).published
    assert by_shop(limited) == sums(*GOOD)

    fixed = edit(limited, *MILDER)
    assert not tick(fixed, 3).published  # the lines are validated on request
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert tick(fixed, 4).published
    assert by_shop(fixed) == sums(*GOOD, *EVES, sale("8"), *(sale(f"e{n}", "eve", "3.00") for n in range(4)))
    is_true(fixed)


def test_discarded_lines_are_not_replayed(made: Site) -> None:
    run(made, "quarantine", "discard", NAME, "--reason", UNKNOWN, "--because", "eve has closed")
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")

    assert tick(fixed).published
    assert by_shop(fixed) == sums(*GOOD)


def test_lines_that_are_to_be_replayed_are_not_discarded(made: Site) -> None:
    """One command decides about a line, and a later one is rejected."""
    run(made, "quarantine", "replay", NAME, "--reason", UNKNOWN)
    said = run(made, "quarantine", "discard", NAME, "--all", "--because", "so")
    assert "Discarded 2 lines" in said and "3 lines are to be replayed by the next build" in said


def test_an_environment_has_its_own_queue(made: Site) -> None:
    """A rule is tried in an environment, which has its own landing table and queue; production's stay as they are."""
    fixed = edit(made, *MILDER)
    dev = Site(fixed.root, fixed.engine, "dev")
    assert tick(dev).published
    assert by_shop(dev) == sums(*GOOD, *EVES)
    assert {row["reason"] for row in quarantine_rows(dev, "list", "--env", "dev")} == {NEGATIVE, "not a JSON object"}
    assert waiting(fixed)[UNKNOWN] == 3
    assert by_shop(fixed) == sums(*GOOD)


def test_promotion_records_lines_that_left_the_queue(made: Site) -> None:
    """A query and a rule are fixed in an environment; production takes the table over, and its queue with it."""
    edited = edit(edit(made, *MILDER), "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    assert tick(Site(edited.root, edited.engine, "dev")).published
    assert tick(edited, 3).published

    assert path(edited).endswith(".dev")
    assert by_shop(edited) == sums(*GOOD, *EVES)
    assert waiting(edited) == {NEGATIVE: 1, "not a JSON object": 1}
    assert {row["reason"]: row["replayed"] for row in quarantine_rows(edited, "list") if row["replayed"]} == {
        UNKNOWN: 3
    }
    is_true(edited)


def test_lines_of_a_shared_table_are_pending_in_production(made: Site) -> None:
    """Nothing of production's can be discarded or replayed through an environment."""
    dev = Site(made.root, made.engine, "dev")
    assert tick(dev).published
    for words in (("list",), ("show", NAME), ("replay", NAME, "--all"), ("discard", NAME, "--all", "--because", "so")):
        assert "Leave out --env" in run(made, "quarantine", *words, "--env", "dev", code=2)


def test_replayed_lines_land_again_after_a_rollback(made: Site) -> None:
    """Landing tables aren't restored: the next build finds the lines among those that landed since the old tick."""
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert tick(fixed).published
    run(fixed, "rollback", "--to", "2")
    assert by_shop(fixed) == sums(*GOOD)

    assert tick(fixed, 3).published
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    assert Decimal("4.50") == by_shop(fixed)["eve"][0]
    is_true(fixed)
