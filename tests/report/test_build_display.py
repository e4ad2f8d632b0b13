"""A tick with nothing new is one line, `--replay` and `--every` print one line a tick, problems are always in full."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from sqlrun.engine_api import Receipt
from sqlrun.events import CheckResult, Event, NodeResult, Note, StageReceipt, Started, TickResult
from sqlrun.report import log_lines
from sqlrun.report.build_display import BuildDisplay, Detail, UnitTestRun
from sqlrun.report.console import Console
from sqlrun.report.log_lines import Line
from tests.report.test_console import COLOURS, NOW, plain, terminal
from tests.report.test_report import check, tick
from tests.support.waiting import wait_until

OPENING = [Line("Running with sqlrun=1", style="dim"), Line("Found 2 models")]
IDLE = (
    NodeResult(1, 2, "dishes", "seed", "no-op", 0.1),
    NodeResult(2, 2, "orders", "merge", "no-op", 0.1),
)
CHANGED = (IDLE[0], replace(IDLE[1], status="success", rows=5))
ONE_LINE = "Nothing new: tick 12 published, as_of 2026-01-01 12:05 UTC, 1 model and 1 seed unchanged (4.21s)"


def play(display: BuildDisplay, result: TickResult, *events: Event) -> bool:
    """Show a tick as a build does."""
    display.begin_tick()
    for event in events:
        display.emit(event)
    for node in result.nodes:
        display.emit(
            Started(node.index, node.total, f"{node.kind} {'' if node.kind == 'seed' else 'model '}{node.name}")
        )
        display.emit(node)
        for each in result.checks:
            if each.model == node.name:
                display.emit(each)
    return display.end_tick(result, before=11)


def printed(
    detail: Detail, *results: TickResult, notes: tuple[Event, ...] = (), tests: UnitTestRun | None = None
) -> str:
    """Return what a build prints of some ticks, without the time of day."""
    console, out, err = plain()
    display = BuildDisplay(console, detail, tests)
    display.begin_build(OPENING)
    for result in results:
        play(display, result, *notes)
    console.close()
    assert err.getvalue() == ""
    return out.getvalue().replace("12:05:09  ", "")


def of_orders(status: str, **more: object) -> CheckResult:
    return replace(check(status, **more), model="orders", check_id="c1")  # type: ignore[arg-type]


def test_a_tick_with_nothing_new_is_one_line() -> None:
    unjudged = of_orders("unjudged", message="not evaluated: no past yet")

    assert printed("steps", tick(*IDLE)) == f"{ONE_LINE}\n"
    assert printed("steps", tick(*IDLE, checks=(of_orders("pass"), unjudged))) == f"{ONE_LINE}\n"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (tick(*CHANGED), "OK merge model orders"),
        (tick(*IDLE, checks=(of_orders("warn", unexpected=2),)), "WARN 2"),
        (tick(*IDLE, checks=(of_orders("fail", unexpected=2),), published=False), "FAIL 2"),
        (tick(IDLE[0], replace(IDLE[1], status="error", message="out of memory"), published=False), "out of memory"),
        (tick(IDLE[0], replace(IDLE[1], status="skipped"), published=False), "SKIP merge model orders"),
    ],
)
def test_a_tick_with_news_prints_its_steps(result: TickResult, words: str) -> None:
    said = printed("steps", result)

    assert said.startswith("Found 2 models\n1 of 2 START seed dishes")
    assert words in said and "NO-OP seed dishes" in said and "Done. PASS=" in said
    assert "Running with" not in said and "Nothing new" not in said


def test_a_promoted_table_is_news() -> None:
    shared, promoted = Note("Environment dev: 2 tables shared"), Note("orders: promoted from dev", is_news=True)

    assert printed("steps", tick(*IDLE), notes=(shared,)) == f"{ONE_LINE}\n"
    assert "orders: promoted from dev\n" in printed("steps", tick(*IDLE), notes=(promoted,))


def test_verbose_prints_every_step_of_a_tick_with_nothing_new() -> None:
    said = printed("verbose", tick(*IDLE), tick(*IDLE))

    assert said.startswith("Running with sqlrun=1\nFound 2 models\n")
    assert said.count("NO-OP merge model orders") == 2 and said.count("Done. PASS=0") == 2


def test_each_tick_of_a_replay_is_one_line() -> None:
    said = printed("ticks", tick(*IDLE), tick(*CHANGED, checks=(of_orders("pass"),)))

    assert said.splitlines() == [
        "Found 2 models",
        ONE_LINE,
        "Tick 12 published: as_of 2026-01-01 12:05 UTC, 1 of 2 tables changed (5 rows), 1 check passed (4.21s)",
    ]


def test_problems_of_a_replay_are_printed_in_full_each_time() -> None:
    warned = tick(*CHANGED, checks=(of_orders("warn", unexpected=3, samples=("a=1",)),))
    failed = tick(*CHANGED, checks=(of_orders("fail", unexpected=3, samples=("a=2",)),), published=False)
    said = printed("ticks", warned, warned, failed)

    assert said.count("Got 3 of 1,234 rows not as expected (severity warning):\n    a=1\n") == 2
    assert "tables changed (5 rows), 1 warning (4.21s)\n" in said
    assert "    a=2\n" in said and "Tick 12 is not published; readers still see tick 11." in said
    assert "START" not in said


def test_a_note_is_printed_once_for_a_run() -> None:
    receipt = StageReceipt("orders", "merge", "", 0, 1, Receipt(0.1), note="orders is maintained by Spark")
    noted = tick(IDLE[0], replace(IDLE[1], stages=(receipt,)), checks=(of_orders("info", unexpected=2),))
    unjudged = tick(*IDLE, checks=(of_orders("unjudged", message="not evaluated: no past yet"),))
    said = printed("ticks", noted, noted, noted)

    assert said.count("Nothing new") == 3
    assert said.count("orders is maintained by Spark") == said.count("Note of check") == 1
    assert printed("ticks", unjudged, unjudged).count("not evaluated: no past yet") == 1


def test_the_seconds_of_unit_tests_are_part_of_the_first_tick_s_total() -> None:
    said = printed("steps", tick(*CHANGED), tests=UnitTestRun(52, 3.0))

    assert "Finished running 1 seed, 1 model, 52 unit tests in 7.21 seconds." in said


def test_the_report_is_named_where_there_is_something_to_read() -> None:
    display = BuildDisplay(plain()[0], "ticks")

    assert not play(display, tick(*IDLE)) and not play(display, tick(*CHANGED))
    assert play(display, tick(*CHANGED, checks=(of_orders("warn"),)))
    assert play(display, tick(*CHANGED, published=False))


def test_before_a_tick_no_thread_runs_that_would_keep_unit_tests_from_forking() -> None:
    before = set(threading.enumerate())
    console = plain()[0]
    display = BuildDisplay(console)
    display.begin_build(OPENING)
    assert not set(threading.enumerate()) - before
    display.begin_tick()
    assert len(set(threading.enumerate()) - before) == 1
    console.drop()


def test_the_first_tick_is_never_one_line() -> None:
    console, out, _ = plain()
    display = BuildDisplay(console)
    display.begin_build(OPENING)
    display.begin_tick()
    display.end_tick(tick(*IDLE), before=0)

    assert "Found 2 models" in out.getvalue() and "Done." in out.getvalue()


def test_a_tick_that_an_error_ends_prints_what_it_did() -> None:
    for detail, expected in (("steps", True), ("verbose", True), ("ticks", False)):
        console, out, _ = plain()
        display = BuildDisplay(console, detail)  # type: ignore[arg-type]
        display.begin_tick()
        if detail == "steps":
            display.begin_build(OPENING)
        display.emit(Started(1, 2, "seed dishes"))
        display.end_broken_tick()

        assert ("START seed dishes" in out.getvalue()) is expected


def test_held_lines_keep_their_time_and_are_printed_after_a_while() -> None:
    console, out, _ = plain()
    console.hold()
    console.release_after(0.05)
    console.log([Line("waits")])
    console.print("is printed at once", "warning")
    assert out.getvalue() == "12:05:09  is printed at once\n"
    wait_until(lambda: "waits" in out.getvalue(), "the line is never printed")

    assert out.getvalue().endswith("12:05:09  waits\n")
    assert not console.drop()


@pytest.mark.parametrize("columns", [40, 80, 240])
@pytest.mark.parametrize("environ", [COLOURS, {"TERM": "dumb"}, {**COLOURS, "NO_COLOR": "1"}])
def test_every_terminal_gets_the_same_words(columns: int, environ: dict[str, str]) -> None:
    """Color and progress are extra: a screen reader, or a terminal without them, gets every fact as text."""
    with terminal(columns) as (screen, texts):
        console = Console(out=screen, err=screen, environ=environ, clock=lambda: NOW)
        display = BuildDisplay(console)
        display.begin_build(OPENING)
        play(display, tick(*CHANGED, checks=(of_orders("warn", unexpected=2),)))
        console.close()

    for words in (
        "OK merge model orders",
        "[OK 5 rows in 0.10s]",
        "WARN 2",
        "Completed with 1 warning:",
        "Tick 12 pub",
    ):
        assert words in texts[0]
    if environ != COLOURS:
        assert "\x1b" not in texts[0]
    assert log_lines.is_idle(tick(*IDLE)) and not log_lines.is_idle(tick(*CHANGED))
