"""The queue of quarantined lines: the report of each, and no line leaves it without a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlrun.commands import quarantine_queue
from sqlrun.errors import EngineError
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.shops import NAME, NEGATIVE, UNKNOWN, discards, edit, quarantine_rows, run, sale, send, site, waiting

pytestmark = [pytest.mark.usefixtures("unchecked"), pytest.mark.slow]


@pytest.fixture
def made(tmp_path: Path) -> Site:
    """Four valid sales and four quarantined lines, in two ticks; one of them is twice in its file."""
    found = site(tmp_path)
    send(found, "0.jsonl", sale("1"), sale("2", "bob"), sale("3", "eve"), "{cut off")
    assert found.tick(START).published
    send(found, "1.jsonl", sale("4"), sale("5", amount="-1.00"), sale("6"), sale("7", "eve"), sale("7", "eve"))
    assert found.tick(START + FIVE).published
    return found


def test_a_list_counts_by_reason(made: Site) -> None:
    """The number of pending lines, since when, in which ticks, and which check quarantined them."""
    rows = {row["reason"]: row for row in quarantine_rows(made, "list")}

    assert {reason: row["waiting"] for reason, row in rows.items()} == {UNKNOWN: 3, NEGATIVE: 1, "not a JSON object": 1}
    assert (rows[UNKNOWN]["first_tick"], rows[UNKNOWN]["last_tick"]) == (1, 2)
    assert rows[UNKNOWN]["first_landed"] < rows[UNKNOWN]["last_landed"]
    assert rows[UNKNOWN]["check_id"] and rows[NEGATIVE]["check_id"] != rows[UNKNOWN]["check_id"]
    assert rows["not a JSON object"]["check_id"] == ""
    assert {(row["replayed"], row["discarded"]) for row in rows.values()} == {(0, 0)}
    assert "5 lines are pending in quarantine." in run(made, "quarantine", "list")
    assert not (Path(made.warehouse) / "_sqlrun" / "quarantine").exists(), "to look writes nothing"


def test_lines_are_shown_with_their_place(made: Site) -> None:
    """File, number of the line, tick, reason, text, and an id that is independent of the time of the request."""
    rows = quarantine_rows(made, "show", NAME)
    places = {(row["file"], row["line"], row["tick"], row["reason"], row["lines"]) for row in rows}

    assert places == {
        ("0.jsonl", 3, 1, UNKNOWN, 1),
        ("0.jsonl", 4, 1, "not a JSON object", 1),
        ("1.jsonl", 2, 2, NEGATIVE, 1),
        ("1.jsonl", 4, 2, UNKNOWN, 2),
    }
    assert {row["raw"] for row in rows} == {
        json.dumps(sale("3", "eve")), json.dumps(sale("7", "eve")), json.dumps(sale("5", amount="-1.00")), "{cut off"
    }  # fmt: skip
    assert len({row["id"] for row in rows}) == 4
    assert [row["id"] for row in quarantine_rows(made, "show", NAME)] == [row["id"] for row in rows]
    assert [row["reason"] for row in quarantine_rows(made, "show", NAME, "--reason", NEGATIVE)] == [NEGATIVE]
    assert "first 2 lines in quarantine of stg_sales" in run(made, "quarantine", "show", NAME, "--limit", "2")
    (made.orders / "0.jsonl").unlink()
    assert {row["line"] for row in quarantine_rows(made, "show", NAME)} == {None, 2, 4}


def test_text_that_may_hold_pii_is_hidden(tmp_path: Path) -> None:
    """The tagged column shows ***, the text nothing, unless both are requested."""
    made = site(tmp_path, pii=True)
    send(made, "0.jsonl", sale("1", "eve", guest="Mallory"), '{"guest": "Mallory', sale("2"))
    assert made.tick(START).published

    assert "Mallory" not in run(made, "quarantine", "show", NAME)
    hidden = quarantine_rows(made, "show", NAME)
    assert "Mallory" not in json.dumps(hidden)
    assert {"id": "1", "shop": "eve", "amount": 1.0, "guest": "***"} in [row["row"] for row in hidden]
    assert "Mallory" in run(made, "quarantine", "show", NAME, "--raw")
    assert all("Mallory" in row["raw"] for row in quarantine_rows(made, "show", NAME, "--raw"))


def test_a_failed_tick_has_its_queue(made: Site) -> None:
    """Lines are in the landing table whether or not their tick was published."""
    send(made, "2.jsonl", sale("8", "eve"))

    def failing(*_: object) -> None:
        raise EngineError("no more disk")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(made.engine, "write", failing)
        assert not made.tick(START + 2 * FIVE).published
    assert waiting(made)[UNKNOWN] == 4


def test_models_without_a_queue_are_reported(made: Site, tmp_path: Path) -> None:
    """A model that lands nothing, an unknown model, an empty warehouse."""
    assert "reads a source" in run(made, "quarantine", "show", "by_shop", code=2)
    assert "stg_sales" in run(made, "quarantine", "show", "stg_sale", code=2)
    empty = site(tmp_path / "empty")
    assert "no line has landed" in run(empty, "quarantine", "list", code=2)
    assert "no line has landed" not in run(made, "quarantine", "list", "--select", NAME)


def test_a_discarded_line_is_not_pending_but_recorded(made: Site) -> None:
    """Who, when, why and how many; the line stays in its table, and no tick changes that."""
    one = next(row for row in quarantine_rows(made, "show", NAME) if row["reason"] == NEGATIVE)
    run(made, "quarantine", "discard", NAME, "--id", one["id"], "--because", "the till was tested")
    run(made, "quarantine", "discard", NAME, "--reason", UNKNOWN, "--because", "eve has closed")

    assert waiting(made) == {"not a JSON object": 1}
    assert [row["reason"] for row in quarantine_rows(made, "show", NAME)] == ["not a JSON object"]
    assert {row["id"]: row["state"] for row in quarantine_rows(made, "show", NAME, "--discarded")}[
        one["id"]
    ] == "discarded"
    assert {row["reason"]: row["discarded"] for row in quarantine_rows(made, "list") if row["discarded"]} == {
        UNKNOWN: 3,
        NEGATIVE: 1,
    }
    assert [(row["reason"], row["lines"], row["because"]) for row in discards(made)] == [
        (UNKNOWN, 3, "eve has closed"), (NEGATIVE, 1, "the till was tested")
    ]  # fmt: skip
    assert all("@" in row["who"] and row["written_at"] for row in discards(made))
    assert "(shop: There are two shops.): eve has closed" in run(made, "quarantine", "list")
    assert made.tick(START + 2 * FIVE).published
    assert len(discards(made)) == 2


def test_a_discarded_line_stays_discarded_when_it_lands_from_scratch(made: Site) -> None:
    """Its id depends on its text and its file: a new table doesn't change a decision."""
    run(made, "quarantine", "discard", NAME, "--all", "--because", "none of it matters")
    edited = edit(made, "where id <> 'test'", "where id <> 'tests'", "models/stg_sales.sql")
    assert "lands its source from scratch" in run(edited, "quarantine", "list")
    assert edited.tick(START + 2 * FIVE).published

    assert waiting(edited) == {}
    assert sum(row["lines"] for row in discards(edited)) == 5


def test_invalid_discards_are_refused(made: Site) -> None:
    """Which lines, and why: a command that lacks one of them, or names an unknown line, does nothing."""
    because = ("--because", "so")
    assert "--because" in run(made, "quarantine", "discard", NAME, "--all", code=2)
    assert "is empty" in run(made, "quarantine", "discard", NAME, "--all", "--because", " ", code=2)
    assert "select lines by one of" in run(made, "quarantine", "discard", NAME, *because, code=2)
    assert "select lines by one of" in run(made, "quarantine", "discard", NAME, "--all", "--id", "x", *because, code=2)
    assert "no pending line with the id `x`" in run(made, "quarantine", "discard", NAME, "--id", "x", *because, code=2)
    said = run(made, "quarantine", "discard", NAME, "--reason", UNKNOWN.replace("two", "tow"), *because, code=2)
    assert "There are two shops" in said
    assert sum(waiting(made).values()) == 5 and discards(made) == []


def test_one_of_two_concurrent_commands_is_refused(made: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has read was outdated when it wrote: nothing is written twice."""
    real = quarantine_queue.lines
    raced: list[bool] = []

    def reading(*args: Any, **named: Any) -> Any:
        found = real(*args, **named)
        if not raced:
            raced.append(True)
            run(made, "quarantine", "discard", NAME, "--all", "--because", "the faster one")
        return found

    monkeypatch.setattr(quarantine_queue, "lines", reading)
    said = run(made, "quarantine", "discard", NAME, "--all", "--because", "the slower one", code=75)
    assert "Try again" in said
    assert {row["because"] for row in discards(made)} == {"the faster one"}
