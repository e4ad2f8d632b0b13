"""Lines that were set aside come in after a fix: once, whatever happens, and the marts say what they would have."""

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
    run,
    sale,
    send,
    site,
    sums,
    told,
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
    """Three good sales, three of an unknown shop (two of them the same line), a negative one and a line cut off."""
    made = site(folder, engine)
    send(made, "0.jsonl", GOOD[0], GOOD[1], EVES[0], "{cut off")
    assert made.tick(START).published
    send(made, "1.jsonl", GOOD[2], OWING, *EVES[1:])
    assert made.tick(START + FIVE).published
    assert by_shop(made) == sums(*GOOD)
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, unchecked: None) -> Path:
    """Made once; each test has a copy of its own."""
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
    """Each table is its query over what has landed, and adds up to what was written."""
    published = tick_of(made.ledger)
    names = ("by_shop", NAME)
    assert all(verdict.ok for verdict in verify(made.prepared.workspace, made.warehouse, published, names, 5))
    assert all(found.ok for found in checksums.compare(made.warehouse, published, names))


def test_lines_come_in_after_a_fix_as_late_ones(made: Site) -> None:
    """The rule is mended, the lines are replayed: the same table, and the marts as if it had always been so."""
    before = path(made)
    fixed = edit(made, *MILDER)
    result = tick(fixed)
    assert result.published and path(fixed) == before
    assert "3 lines are" not in note(result) and "5 lines are in quarantine" in note(result)
    assert by_shop(fixed) == sums(*GOOD)

    assert "validates 3 lines" in run(fixed, "quarantine", "replay", NAME, "--reason", UNKNOWN)
    assert {row["state"] for row in told(fixed, "show", NAME, "--reason", UNKNOWN)} == {"replay asked"}
    assert {row["reason"]: row["asked"] for row in told(fixed, "list")}[UNKNOWN] == 3
    result = tick(fixed, 3)

    assert result.published and path(fixed) == before
    assert note(result) == "stg_sales: replayed 3 lines of the quarantine: 3 came in"
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    assert Counter(row["id"] for row in fixed.rows(NAME)) == Counter(["1", "2", "4", "3", "7", "7"])
    assert waiting(fixed) == {NEGATIVE: 1, "not a JSON object": 1}
    assert {row["reason"]: row["replayed"] for row in told(fixed, "list") if row["replayed"]} == {UNKNOWN: 3}
    is_true(fixed)


def test_what_has_come_in_comes_in_once(made: Site) -> None:
    """Asked twice before the build, asked again after it, and a build more: nothing is there twice."""
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert "validates 0 lines" in run(fixed, "quarantine", "replay", NAME, "--all")
    assert tick(fixed).published
    assert "no pending line of stg_sales" in run(fixed, "quarantine", "replay", NAME, "--reason", UNKNOWN, code=2)
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert "2 still quarantined" in note(tick(fixed, 3))
    result = tick(fixed, 4)
    assert result.published and note(result) == ""

    assert by_shop(fixed) == sums(*GOOD, *EVES)
    assert waiting(fixed) == {NEGATIVE: 1, "not a JSON object": 1}
    is_true(fixed)


def test_those_that_still_break_go_back_with_the_reason_of_now(made: Site) -> None:
    """They are told, wait on, and may be replayed again; one that the query leaves out leaves the table."""
    send(made, "2.jsonl", sale("test", "zoe", "1.00"))
    edited = edit(made, "There are two shops.", "Nobody knows this shop.")
    assert tick(edited).published  # the source's line of a test is left out by the query
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


def test_a_rule_that_is_gone_and_one_that_landed_rows_break(made: Site) -> None:
    """Without its rule a line comes in by a replay; a stricter rule lands everything anew, as an edited query does."""
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


def test_a_plan_tells_rules_that_keep_the_table(made: Site) -> None:
    assert "new rules  stg_sales" in run(edit(made, *MILDER), "plan")


def test_an_edited_query_judges_all_lines_anew(made: Site) -> None:
    """Its table is made anew from the files, so a replay that was asked for is done by that, and told so."""
    run(made, "quarantine", "replay", NAME, "--all")
    edited = edit(edit(made, *MILDER), "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    result = tick(edited)

    assert result.published
    assert "3 landed again, 2 still quarantined" in note(result)
    assert by_shop(edited) == sums(*GOOD, *EVES)
    assert waiting(edited) == {NEGATIVE: 1, "not a JSON object": 1}
    is_true(edited)


def test_lines_that_land_anew_leave_the_queue_on_record(made: Site) -> None:
    """Nobody asked for it: the book says which the new table has as rows, and which were lost with their file."""
    (made.orders / "1.jsonl").unlink()
    edited = edit(edit(made, *MILDER), "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    run(edited, "quarantine", "replay", NAME, "--reason", NEGATIVE)
    assert not tick(edited).published  # it would lose lines
    assert edited.tick(START + 2 * FIVE, accept_lost=True).published

    assert by_shop(edited) == sums(GOOD[0], GOOD[1], EVES[0])
    rows = {row["reason"]: row for row in told(edited, "list")}
    assert {reason: row["replayed"] for reason, row in rows.items() if row["replayed"]} == {UNKNOWN: 1}
    assert {reason: row["discarded"] for reason, row in rows.items() if row["discarded"]} == {UNKNOWN: 2, NEGATIVE: 1}
    assert {row["because"] for row in discards(edited)} == {LOST}
    assert waiting(edited) == {"not a JSON object": 1}


def test_lines_whose_file_is_gone_come_in_too(made: Site) -> None:
    """The text lies in the table: a rule may be mended, and its lines replayed, long after the files were deleted."""
    for file in made.orders.iterdir():
        file.unlink()
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")

    assert tick(fixed).published
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    is_true(fixed)


def points() -> dict[str, Any]:
    """Where a tick that replays is cut short."""

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
def test_a_replay_that_was_cut_short_is_carried_out_once(
    made: Site, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """No line is lost or doubled, readers see the old tick until all is there, the record says what came of it."""
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
    assert {row["reason"]: row["replayed"] for row in told(fixed, "list") if row["replayed"]} == {UNKNOWN: 3}
    assert tick(fixed, 4).published
    assert by_shop(fixed) == sums(*GOOD, *EVES, sale("8"))
    is_true(fixed)


def test_a_rule_that_was_tried_by_a_failed_tick_leaves_nothing(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that a tick which was never published took in by milder rules are judged by those that are there again."""
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


def test_rules_are_held_before_anything_is_published(tmp_path: Path) -> None:
    """Rows of a first tick that failed were judged by the rules of then: stricter ones land them anew."""
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


def test_a_tick_that_set_too_much_aside_goes_on_after_a_replay(made: Site) -> None:
    """A fault is planted, nothing is published, the rule is mended, the lines are replayed, and all is right."""
    limited = edit(made, "expectations:\n", "max_quarantined: 10%\nexpectations:\n")
    send(limited, "2.jsonl", sale("8"), *(sale(f"e{n}", "eve", "3.00") for n in range(4)))
    assert not tick(limited).published
    assert by_shop(limited) == sums(*GOOD)

    fixed = edit(limited, *MILDER)
    assert not tick(fixed, 3).published  # the lines are judged when somebody asks for it
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
    """One command decides about a line, and the one after it is told so."""
    run(made, "quarantine", "replay", NAME, "--reason", UNKNOWN)
    said = run(made, "quarantine", "discard", NAME, "--all", "--because", "so")
    assert "Discarded 2 lines" in said and "3 lines are already waiting for replay" in said


def test_an_environment_has_its_own_queue(made: Site) -> None:
    """A rule is tried in an environment: its landing table and its queue are its own, production's stay as they are."""
    fixed = edit(made, *MILDER)
    dev = Site(fixed.root, fixed.engine, "dev")
    assert tick(dev).published
    assert by_shop(dev) == sums(*GOOD, *EVES)
    assert {row["reason"] for row in told(dev, "list", "--env", "dev")} == {NEGATIVE, "not a JSON object"}
    assert waiting(fixed)[UNKNOWN] == 3
    assert by_shop(fixed) == sums(*GOOD)


def test_a_promoted_table_leaves_a_record_of_what_no_longer_waits(made: Site) -> None:
    """A query and a rule are mended in an environment; production takes the table over, and its queue with it."""
    edited = edit(edit(made, *MILDER), "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    assert tick(Site(edited.root, edited.engine, "dev")).published
    assert tick(edited, 3).published

    assert path(edited).endswith(".dev")
    assert by_shop(edited) == sums(*GOOD, *EVES)
    assert waiting(edited) == {NEGATIVE: 1, "not a JSON object": 1}
    assert {row["reason"]: row["replayed"] for row in told(edited, "list") if row["replayed"]} == {UNKNOWN: 3}
    is_true(edited)


def test_what_an_environment_shares_waits_in_production(made: Site) -> None:
    """Nothing of production's can be discarded or replayed through an environment."""
    dev = Site(made.root, made.engine, "dev")
    assert tick(dev).published
    for words in (("list",), ("show", NAME), ("replay", NAME, "--all"), ("discard", NAME, "--all", "--because", "so")):
        assert "without --env" in run(made, "quarantine", *words, "--env", "dev", code=2)


def test_a_rollback_takes_replayed_lines_in_anew(made: Site) -> None:
    """Landing tables aren't restored: the next build finds the lines among what has landed since the old tick."""
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    assert tick(fixed).published
    run(fixed, "rollback", "--to", "2")
    assert by_shop(fixed) == sums(*GOOD)

    assert tick(fixed, 3).published
    assert by_shop(fixed) == sums(*GOOD, *EVES)
    assert Decimal("4.50") == by_shop(fixed)["eve"][0]
    is_true(fixed)
