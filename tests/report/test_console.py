"""What reaches the terminal, a file, or nobody."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import pytest

from sqlrun.errors import EngineError, Place, Problem, ProjectError, UsageError
from sqlrun.events import NodeResult, Started
from sqlrun.report.console import Console, is_lively
from sqlrun.report.log_lines import Line
from tests.report.test_report import check
from tests.support.waiting import wait_until

NOW = datetime(2026, 1, 1, 12, 5, 9, tzinfo=timezone.utc)
COLOURS = {"TERM": "xterm"}


def plain(**more: Any) -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Console(out=out, err=err, environ={}, clock=lambda: NOW, **more), out, err


def play(console: Console) -> None:
    """Tell a small tick."""
    console.emit(Started(1, 2, "seed dishes"))
    console.emit(NodeResult(1, 2, "dishes", "seed", "success", 0.1, 40))
    console.emit(Started(2, 2, "merge model stg_orders"))
    console.emit(NodeResult(2, 2, "stg_orders", "merge", "success", 0.8, 5))
    console.emit(check())
    console.emit(check("fail", 3))
    console.emit(check())


def undotted(text: str) -> list[str]:
    return [re.sub(r" \.+ ", " ", line) for line in text.splitlines()]


@contextmanager
def terminal(columns: int, encoding: str = "utf-8") -> Iterator[tuple[Any, list[str]]]:
    """Give a terminal to write to, and what it received once it is closed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
    received: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(master, 65536):
                received.append(data)
        except OSError:
            return  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    texts: list[str] = []
    with os.fdopen(slave, "w", encoding=encoding) as out:
        yield out, texts
    reader.join()
    os.close(master)
    texts.append(b"".join(received).decode(encoding).replace("\r\n", "\n"))


def test_a_file_gets_plain_lines_with_the_time() -> None:
    console, out, _ = plain()
    play(console)
    console.close()

    assert undotted(out.getvalue()) == [
        "12:05:09  1 of 2 START seed dishes [RUN]",
        "12:05:09  1 of 2 OK loaded seed dishes [OK 40 rows in 0.10s]",
        "12:05:09  2 of 2 START merge model stg_orders [RUN]",
        "12:05:09  2 of 2 OK merge model stg_orders [OK 5 rows in 0.80s]",
        "12:05:09  FAIL 3 expect_column_values_to_be_between stg_orders.order_total [FAIL 3 in 0.01s]",
        "12:05:09  PASS 2 checks of stg_orders [PASS in 0.02s]",
    ]


def test_a_text_is_printed_as_it_is_and_an_empty_line_has_no_blanks() -> None:
    console, out, _ = plain()
    console.lines(["a  table", Line(""), Line("said")])
    console.print("also said")

    assert out.getvalue() == "a  table\n\n12:05:09  said\n12:05:09  also said\n"


@pytest.mark.slow
def test_passes_are_printed_though_nothing_follows() -> None:
    console, out, _ = plain()
    console.emit(check())
    wait_until(out.getvalue, "the line is never printed")

    assert undotted(out.getvalue()) == ["12:05:09  PASS 1 check of stg_orders [PASS in 0.01s]"]


def test_quiet_prints_failures_alone() -> None:
    console, out, _ = plain(quiet=True)
    play(console)
    console.emit(check("warn", 2))
    console.close()

    assert [line[:16] for line in undotted(out.getvalue())] == ["12:05:09  FAIL 3"]


def test_threads_do_not_mix_their_lines() -> None:
    console, out, _ = plain()

    def emit_many(number: int) -> None:
        for _ in range(50):
            console.emit(Started(number, 9, f"model m{number}"))

    threads = [threading.Thread(target=emit_many, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(out.getvalue().splitlines()) == 400
    assert all(re.fullmatch(r"12:05:09  (\d) of 9 START model m\1 \.+ \[RUN\]", t) for t in out.getvalue().splitlines())


def test_a_line_printed_while_another_is_comes_after_it() -> None:
    """A signal handler may print in the middle of a print."""

    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if "first" in text:
                console.lines(["from the handler"])
            return super().write(text)

    out = Interrupted()
    console = Console(out=out, err=out, environ={})
    console.lines(["first", "second"])

    assert out.getvalue().splitlines() == ["first", "from the handler", "second"]


def test_ascii_gets_escapes_instead_of_an_error() -> None:
    held = io.BytesIO()
    out = io.TextIOWrapper(held, encoding="ascii")
    console = Console(out=out, err=out, environ={})
    console.lines(["Café \x1b[31m"])
    console.raw("Café")
    console.problem(UsageError("Café"))

    assert held.getvalue() == b"Caf\\xe9 \\x1b[31m\nCaf\\xe9\nError: Caf\\xe9\n"


def test_raw_is_exact_in_a_file_and_harmless_on_a_terminal() -> None:
    console, out, _ = plain(quiet=True)
    console.raw("a,\x1b[2J\n")
    with terminal(80) as (screen, texts):
        Console(out=screen, environ={"NO_COLOR": "1", **COLOURS}).raw("a,\x1b[2J")

    assert out.getvalue() == "a,\x1b[2J\n"
    assert texts == ["a,\\x1b[2J\n"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [(COLOURS, True), ({}, False), ({"TERM": "dumb"}, False), ({**COLOURS, "CI": "true"}, False),
     ({**COLOURS, "NO_COLOR": "1"}, False), ({**COLOURS, "CI": "false", "NO_COLOR": ""}, True)],
)  # fmt: skip
def test_who_gets_colours(environ: dict[str, str], expected: bool) -> None:
    with terminal(80) as (screen, _):
        assert is_lively(screen, environ) is expected
    assert not is_lively(io.StringIO(), environ)


@pytest.mark.parametrize(("columns", "encoding"), [(80, "utf-8"), (40, "ascii"), (1, "utf-8")])
@pytest.mark.slow
def test_a_terminal_shows_progress_and_is_left_tidy(columns: int, encoding: str) -> None:
    with terminal(columns, encoding) as (screen, texts):
        console = Console(out=screen, err=screen, environ=COLOURS, clock=lambda: NOW)
        play(console)
        console.lines([Line("Completed successfully", style="good")])
        console.close()

    shown = texts[0]
    assert "START" not in shown
    assert "\x1b[32m[OK 40 rows in 0.10s]\x1b[0m" in shown
    assert "\x1b[31m[FAIL 3 in 0.01s]\x1b[0m" in shown
    assert "\x1b[32m12:05:09  Completed successfully\x1b[0m" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
    if columns >= 40:
        assert "0 of 2 done, 1 running" in shown
        bars = [part for part in re.split(r"\n|\x1b\[[0-9;?]*[a-zA-Z]", shown) if "running" in part]
        assert max(len(bar) for bar in bars) < columns


def test_a_line_does_not_wrap_for_its_dots() -> None:
    with terminal(60) as (screen, texts):
        Console(out=screen, environ={}, clock=lambda: NOW).emit(Started(1, 2, "seed dishes"))

    assert texts == ["12:05:09  1 of 2 START seed dishes ................... [RUN]\n"]
    assert len(texts[0]) == 61


def test_a_problem_takes_the_progress_down_first() -> None:
    """The command line prints a failure with a console of its own."""
    with terminal(80) as (screen, texts):
        Console(out=screen, err=screen, environ=COLOURS).emit(Started(1, 2, "seed dishes"))
        Console(out=screen, err=screen, environ=COLOURS).problem(UsageError("no such model"))

    assert texts[0].index("\x1b[?25h") < texts[0].index("Error: no such model")
    assert texts[0].endswith("Error: no such model\n")


def test_problems_stand_apart_and_are_counted() -> None:
    console, out, err = plain(quiet=True)
    first = Problem(
        "SR301", Place("models/a.sql", 2, 4), "unknown column `amout`", "Did you mean `amount`?", "\tx amout"
    )
    console.problem(ProjectError([first, Problem("SR101", Place("models/b.sql"), "no contract")]))

    assert out.getvalue() == ""
    assert (
        err.getvalue()
        == """\
SR301 models/a.sql:2:4  unknown column `amout`
  2 |     x amout
    |       ^^^^^
  Did you mean `amount`?

SR101 models/b.sql:1:1  no contract

Found 2 problems.
more: sqlrun error SR101 SR301
"""
    )


def test_an_engine_s_failure_shows_model_and_statement() -> None:
    console, _, err = plain()
    statement = "\n".join(["select 1"] * 32)
    console.problem(EngineError("out of memory", model="orders", statement=statement))

    assert err.getvalue() == (
        "Error in orders: out of memory\n  while it ran:\n" + "    select 1\n" * 30 + "    ... 2 more lines\n"
    )


@pytest.mark.slow
def test_a_reader_who_leaves_does_not_end_a_build() -> None:
    code = (
        "import sys, time\nfrom sqlrun.report.console import Console\nfrom sqlrun.events import Started\n"
        "console = Console(environ={})\n"
        "for n in range(3000): console.emit(Started(n + 1, 3000, 'model m'))\n"
        "console.raw('x')\nprint('done', file=sys.stderr)"
    )
    build = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert build.stdout is not None and build.stderr is not None
    with build, build.stdout, build.stderr:
        build.stdout.readline()
        build.stdout.close()

        assert build.stderr.read() == "done\n"
    assert build.returncode == 0


@pytest.mark.slow
def test_plain_lines_need_no_rich() -> None:
    printing = "from sqlrun.report.console import Console; Console().lines(['a'])"
    code = f"import sys; {printing}; assert 'rich' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
