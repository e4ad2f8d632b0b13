"""The benchmark suite: its figures, its report, its measuring, and that it finds wrong rows."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks import bench, bench_aims, bench_report, environments, figures, plots, processes, running, world
from benchmarks.contenders import BY_NAME, CONTENDERS, RIVALS, Contender
from benchmarks.figures import Figures
from benchmarks.processes import Failed, Spent

ABOUT = bench_report.About("2 cores", {"sqlrun_auto": "ours", "duckdb_full": "theirs"})


def measured(contender: str, size: str = "1m", seconds: float = 1.0, **more) -> Figures:
    ticks = [Spent(seconds, seconds * 2, 3_000_000, 1_000_000, 50_000_000) for _ in range(3)]
    title = BY_NAME[contender].title
    found = Figures(size, world.size_of(size.partition("+")[0]), 20_000, contender, title, "warm", "2026-11-22 12:00")
    return replace(found, **{"cold": Spent(seconds * 3), "ticks": ticks, "rows": 10, "wrong": 0, **more})


def test_figures_are_read_as_they_were_written():
    found = measured("duckdb_full", error="it fell", wrong=None, engines={"fct": "spark"})

    assert figures.read(figures.written(found)) == found


def test_a_contender_that_runs_again_takes_the_place_of_its_own_figures():
    old, other, new = measured("duckdb_full", seconds=9.0), measured("duckdb_full", "10m"), measured("duckdb_full")

    assert figures.merged([old, other], new) == [other, new]


def test_the_median_counts_and_one_slow_tick_does_not():
    slow = measured("duckdb_full", ticks=[Spent(1.0), Spent(50.0), Spent(2.0)])

    assert slow.median("seconds") == 2.0


def test_the_report_has_ratios_losses_and_wrong_rows():
    found = [
        measured("sqlrun_auto", seconds=2.0),
        measured("duckdb_full", seconds=1.0),
        measured("dbt_duckdb", seconds=8.0, wrong=4),
    ]
    report = bench_report.markdown(found, ABOUT)

    assert re.search(r"\| DuckDB, full recompute \| warm process \| 1\.00 \| 0\.50 \|.*\| right \|", report)
    assert re.search(r"\| dbt \+ DuckDB \|.*\| 8\.00 \| 4\.00 \|.*\| 4 OF 10 WRONG \|", report)
    assert "Ahead of sqlrun, auto: DuckDB, full recompute." in report
    assert "| 1m: sqlrun, auto ahead of DuckDB, full recompute | ≥ 1 | 0.50 | not met |" in report


def test_who_is_wrong_is_not_ahead():
    found = [measured("sqlrun_auto", seconds=2.0), measured("duckdb_full", seconds=1.0, wrong=1)]

    assert "Ahead of sqlrun, auto: no other contender." in bench_report.markdown(found, ABOUT)


def test_a_contender_that_failed_is_listed_with_what_it_said_last():
    report = bench_report.markdown([measured("duckdb_full", ticks=[], error="first\nout of memory")], ABOUT)

    assert "## Failed" in report and "out of memory" in report


def test_the_page_is_whole_and_needs_nothing_from_outside():
    found = [measured("sqlrun_auto", size) for size in ("20k", "1m", "10m")]
    page = bench_report.html([*found, measured("duckdb_full", error="<b>&", ticks=[])], ABOUT)

    assert "<svg" in page and "prefers-color-scheme: dark" in page and "&lt;b&gt;&amp;" in page
    assert not re.findall(r"<(?:link|script|img|iframe)|url\(|@import", page)
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}


def test_a_report_of_nothing_can_be_written():
    assert bench_report.markdown([], ABOUT).startswith("# sqlrun and its rivals")


def test_a_page_without_marks_takes_no_report():
    with pytest.raises(ValueError, match="no <!-- bench -->"):
        bench_report.pasted("nothing", "# title")


def test_equal_factors_are_equally_far_apart_on_both_axes():
    svg = plots.chart("t", "x", "y", [plots.Line("a<b", ((1e4, 1.0), (1e5, 10.0), (1e6, 100.0)))])
    root = ElementTree.fromstring(svg)
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("{http://www.w3.org/2000/svg}circle")]

    (ax, ay), (bx, by), (cx, cy) = dots
    assert bx - ax == pytest.approx(cx - bx, abs=0.2) and ax < bx
    assert ay - by == pytest.approx(by - cy, abs=0.2) and ay > by
    assert "a<b" in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}


def test_one_point_can_be_drawn_and_none_gives_nothing():
    assert "circle" in plots.chart("t", "x", "y", [plots.Line("a", ((1e6, 1.0),))])
    assert plots.chart("t", "x", "y", [plots.Line("a", ())]) == ""


@pytest.mark.parametrize(
    ("wanted", "found", "verdict"),
    [
        ("≥ 4", 4.0, "met"),
        ("≥ 4", 3.9, "not met"),
        ("≤ 1.2", 1.2, "met"),
        ("≤ 1.2", 1.3, "not met"),
        ("≥ 4", None, "not run"),
    ],
)
def test_an_aim_is_met_or_not(wanted, found, verdict):
    assert bench_aims.Aim("", wanted, found).verdict == verdict


def test_aims_name_contenders_that_there_are():
    assert {name for _, one, other, _ in (*bench_aims.AHEAD, *bench_aims.WITHIN) for name in (one, other)} <= set(
        BY_NAME
    )


def test_contenders_can_be_chosen_and_left_out():
    assert [c.name for c in bench.choose("expert, duckdb_full", "expert")] == ["duckdb_full"]
    assert len(bench.choose("", "")) == len(CONTENDERS)
    with pytest.raises(SystemExit, match="no contender duck"):
        bench.choose("duck", "")


@pytest.mark.parametrize("contender", [c for c in CONTENDERS if c.environment], ids=lambda c: c.name)
def test_a_rival_pins_its_versions(contender):
    required = environments.listed(RIVALS / contender.environment / "requirements.txt")
    names = [line.partition("==")[0].partition("[")[0] for line in required]

    assert all(re.fullmatch(r"[\w.\[\]-]+==[\w.]+", line) for line in required)
    assert set(contender.packages) <= set(names)


@pytest.mark.slow
def test_a_command_is_measured_with_what_it_starts(tmp_path):
    inner = "b = bytearray(60_000_000); import time; t = time.process_time()\nwhile time.process_time() < t + 0.3: pass"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    found = processes.command([sys.executable, "-c", outer], tmp_path, {}, 60, tmp_path / "log")

    assert found.seconds > 0.3 and found.cpu > 0.2
    assert found.memory > 60_000_000 and found.read > 0


@pytest.mark.slow
def test_a_command_that_fails_says_why(tmp_path):
    with pytest.raises(Failed, match="the end of it"):
        processes.command(
            [sys.executable, "-c", "raise SystemExit('the end of it')"], tmp_path, {}, 60, tmp_path / "log"
        )


@pytest.mark.slow
def test_a_command_that_does_not_end_is_ended(tmp_path):
    with pytest.raises(Failed, match="took more than"):
        argv = [sys.executable, "-c", "import time; time.sleep(60)"]
        processes.command(argv, tmp_path, {}, 0.3, tmp_path / "log")


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> tuple[world.World, Path]:
    root = tmp_path_factory.mktemp("bench")
    return world.make(root / "tiny", "tiny", world.SMALL, 1000, 200, 3), root


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["duckdb_full", "duckdb_by_hand", "sqlrun_duckdb_command"])
def test_contenders_on_duckdb_are_right_on_a_tiny_history(small, name):
    made, root = small
    asked = running.Asked(root, 1, 1, "1g", 120, own=True)
    found = running.carry_out(BY_NAME[name], made, asked)

    assert found.error == ""
    assert (found.wrong, len(found.ticks)) == (0, 1) and found.rows > 10
    assert found.cold.seconds > 0 and found.memory > 10_000_000


@pytest.mark.slow
def test_wrong_rows_and_failures_are_found(small):
    made, root = small
    row = {"window_hours": 1, "restaurant_id": "r0001", "n_orders": 1, "total_sales": 0.0, "top_dishes": []}
    liar = Contender("liar", "Liar", "", commands=lambda place, as_of: [], rows=lambda folder: [row])
    asked = running.Asked(root, 1, 0, "1g", 10)
    running.BY_NAME["liar"] = liar
    try:
        found = running.carry_out(liar, made, asked)
        failed = running.carry_out(replace(liar, commands=lambda place, as_of: [["false"]]), made, asked)
    finally:
        del running.BY_NAME["liar"]

    assert found.wrong >= found.rows > 10 and not found.is_right
    assert "`" not in failed.error and "false ended with 1" in failed.error and not failed.is_right


def test_the_report_is_written_and_read_again(tmp_path):
    bench.write_reports(tmp_path, [measured("duckdb_full"), measured("sqlrun_auto")])

    assert [one.contender for one in bench.known_in(tmp_path)] == ["sqlrun_auto", "duckdb_full"]
    assert datetime.strptime(bench.known_in(tmp_path)[0].at, "%Y-%m-%d %H:%M")
    assert (tmp_path / "report.html").read_text().endswith("</html>\n")
