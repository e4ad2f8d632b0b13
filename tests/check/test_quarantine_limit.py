"""`max_quarantined`: a tick that quarantines too much isn't published; it continues once the lines are handled."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import CheckResult, TickResult
from sqlrun.load import suites
from sqlrun.load.yaml_reader import Reader
from sqlrun.project import Limit
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.shops import NAME, SUITE, UNKNOWN, by_shop, project, run, sale, send


def limited(folder: Path, limit: str, *, pii: bool = False) -> Site:
    return Site(project(folder, suite=f"max_quarantined: {limit}\n{SUITE}", pii=pii), DuckDBEngine())


def verdict(result: TickResult) -> CheckResult:
    return next(check for check in result.checks if check.type == "max_quarantined")


@pytest.mark.parametrize(
    ("limit", "good", "bad", "published"),
    [("25%", 3, 1, True), ("24.9%", 3, 1, False), ("0%", 3, 0, True), ("2", 1, 2, True), ("2", 9, 3, False)],
)
@pytest.mark.slow
def test_a_share_or_a_count_decides(
    tmp_path: Path, unchecked: None, limit: str, good: int, bad: int, published: bool
) -> None:
    """Up to the limit a tick is published; above it, it isn't, and the message has both counts."""
    made = limited(tmp_path, limit)
    send(made, "0.jsonl", *(sale(str(n)) for n in range(good)), *(sale(f"x{n}", "eve") for n in range(bad)))
    result = made.tick(START)

    assert result.published is published
    found = verdict(result)
    assert (found.status, found.unexpected, found.evaluated) == ("pass" if published else "fail", bad, good + bad)
    assert f"{bad} of {good + bad} lines" in found.message and f"allows {limit}" in found.message
    assert found.severity == "critical"
    assert (made.ledger.read().published is not None) is published
    if not published:
        assert {n.status for n in result.nodes if n.name == "by_shop"} == {"skipped"}
        assert "reason=shop: There are two shops., file=0.jsonl, raw=" in found.samples[0]


@pytest.mark.slow
def test_readers_see_the_last_tick_until_the_lines_are_handled(tmp_path: Path, unchecked: None) -> None:
    """A failed tick's lines count in the next one; discarded ones don't, and good lines outnumber them."""
    made = limited(tmp_path, "40%")
    send(made, "0.jsonl", sale("1"))
    assert made.tick(START).published
    send(made, "1.jsonl", sale("2"), sale("3", "eve"))
    assert not made.tick(START + FIVE).published
    assert not made.tick(START + FIVE).published  # nothing new, and the same fault
    assert by_shop(made) == {"ada": (Decimal(1), 1)}

    send(made, "2.jsonl", sale("4"))
    assert made.tick(START + 2 * FIVE).published
    assert by_shop(made) == {"ada": (Decimal(3), 3)}

    send(made, "3.jsonl", sale("5"), sale("6", "eve"), sale("7", "eve"))
    result = made.tick(START + 3 * FIVE)
    assert not result.published and verdict(result).message.startswith("2 of 3 lines")
    run(made, "quarantine", "discard", NAME, "--reason", UNKNOWN, "--because", "eve has closed")
    result = made.tick(START + 3 * FIVE)
    assert result.published and verdict(result).message.startswith("0 of 3 lines")
    assert by_shop(made) == {"ada": (Decimal(4), 4)}


@pytest.mark.slow
def test_samples_mask_possible_pii(tmp_path: Path, unchecked: None) -> None:
    made = limited(tmp_path, "0", pii=True)
    send(made, "0.jsonl", sale("1", "eve", guest="Mallory"))

    assert verdict(made.tick(START)).samples == (f"reason={UNKNOWN}, file=0.jsonl",)


@pytest.mark.parametrize("text", ["1%", "0.5 %", "100%", "0", "20"])
def test_a_limit_is_read(text: str) -> None:
    problems: list[object] = []
    suite = suites.suite(Reader("s.yml", f"max_quarantined: {text}\nexpectations: []\n", problems), "m")  # type: ignore[arg-type]

    assert not problems
    assert suite.max_quarantined is not None and suite.max_quarantined.text == text.replace(" ", "")
    assert isinstance(suite.max_quarantined, Limit) and suite.max_quarantined.place.line == 1


@pytest.mark.parametrize("text", ["0.01", "101%", "-1", "-1%", "1 percent", "a few", "[1]", "true", "", "1e2%"])
def test_an_invalid_limit_is_a_problem(text: str) -> None:
    """Reported with its place; nothing is guessed."""
    problems: list[object] = []
    suite = suites.suite(Reader("s.yml", f"max_quarantined: {text}\nexpectations: []\n", problems), "m")  # type: ignore[arg-type]

    assert suite.max_quarantined is None
    assert [(p.code, p.place.line) for p in problems][-1] == ("SR717", 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("good", "bad", "limit", "status"),
    [
        (9, 1, None, None),  # a handful of lines, one of them bad
        (1, 9, None, None),
        (0, 1, None, "fail"),  # no line was ever accepted
        (0, 2, None, "fail"),
        (50, 50, None, None),
        (49, 51, None, "fail"),
        (0, 2, "20", "fail"),
        (0, 2, "100%", "pass"),
        (0, 0, None, None),
    ],
)
@pytest.mark.slow
def test_the_default_limit(
    tmp_path: Path, unchecked: None, good: int, bad: int, limit: str | None, status: str | None
) -> None:
    """More than half of at least a hundred lines, and all lines, block publishing."""
    made = limited(tmp_path, limit) if limit else Site(project(tmp_path), DuckDBEngine())
    lines = (*(sale(str(n)) for n in range(good)), *(sale(f"x{n}", "eve") for n in range(bad)))
    send(made, "0.jsonl", *lines)
    result = made.tick(START)

    assert [check.status for check in result.checks if check.type == "max_quarantined"] == ([status] if status else [])
    assert result.published is (status != "fail")


@pytest.mark.slow
def test_a_single_broken_line_stops_nothing(tmp_path: Path, unchecked: None) -> None:
    """It is a warning, never a success; two such lines together are a failure until a good one arrives."""
    made = Site(project(tmp_path), DuckDBEngine())
    send(made, "0.jsonl", sale("1"))
    made.tick(START)
    send(made, "1.jsonl", "broken")
    result = made.tick(START + FIVE)
    assert result.published and verdict(result).status == "warn"
    send(made, "2.jsonl", "broken", "[")
    result = made.tick(START + 2 * FIVE)
    assert not result.published and "allows all lines" in verdict(result).message
    assert not made.tick(START + 2 * FIVE).published
    send(made, "3.jsonl", sale("2"))
    assert made.tick(START + 3 * FIVE).published
