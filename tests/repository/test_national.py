"""The benchmark of a national platform: its orders, and a small one whose every row is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.national import Answer, wrong_answers
from benchmarks.national_orders import TICKS, Country

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("country", [Country(), Country(300, 20, 100), Country(1000, 100, 400)])
def test_a_day_has_the_mean_and_the_peak(country: Country) -> None:
    orders = country.orders()

    assert len(orders) == TICKS
    assert sum(orders) == country.mean * TICKS
    assert max(orders) == country.peak and min(orders) >= 0


def test_an_answer_of_another_tick_or_restaurant_is_wrong() -> None:
    right: set[Answer] = {(7, "r1", 24, 3, 1250), (8, "r1", 24, 4, 1600)}

    assert wrong_answers({(7, "r1", 24, 3, 1250), (8, "r1", 24, 4, 1600), (8, "r2", 24, 0, 0)}, right) == 0
    assert wrong_answers({(7, "r1", 24, 4, 1600)}, right) == 1
    assert wrong_answers({(8, "r1", 24, 0, 0)}, right) == 1
    assert wrong_answers({(8, "r2", 24, 1, 900)}, right) == 1


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("more", [[], ["--ahead"]], ids=["at once", "ahead"])
def test_a_small_platform_is_right_to_the_cent(more: list[str], tmp_path: Path) -> None:
    """The benchmark exits with 1 if a row of the mart differs from what its own SQL computes from the orders."""
    options = ["--restaurants", "300", "--mean", "20", "--peak", "100", "--days", "1", "--ticks", "3", *more]
    command = [sys.executable, "-m", "benchmarks.national", *options, "--seconds", "0", "--folder", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "tick 3: " in done.stdout and done.stdout.count(", 0 wrong") == 2
    assert ("seconds to land ahead" in done.stdout) == bool(more)
