"""The tests that an edit affects, detection of saves, and the process of `--watch`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.unit_tests import file_watcher, project_tests
from sqlrun.unit_tests.affected import Seen, changed_tests, seen
from sqlrun.unit_tests.file_watcher import Saved
from tests.support import broken, tested

TOTALS = {"totals::prices_are_added", "totals::free_lines_are_left_out"}


def looked(root: Path) -> Seen:
    prepared = pipeline.prepare(root)
    return seen(prepared, project_tests.tests_of(prepared))


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("models/totals.sql", "price > 0", "price >= 0", TOTALS),
        ("models/totals.sql", "with paid", "-- only what is paid\nwith paid", set()),
        ("models/totals.yml", "price: 3}", "price: 4}", {"totals::prices_are_added"}),
        ("models/totals.yml", "prices_are_added", "sums_are_right", {"totals::sums_are_right"}),
        ("models/totals.yml", "A row.", "A sum.", set()),
        ("models/totals.yml", "grain: [order_id]", "grain: [order_id, size]", TOTALS),
        # A test of totals gives its own lines: it depends only on their columns.
        ("models/lines.sql", "cast(2", "cast(3", {"lines::a_line_is_a_line"}),
        ("models/lines.yml", "name: price, data_type: 'int'", "name: price, data_type: 'bigint'",
         TOTALS | {"lines::a_line_is_a_line"}),
        ("macros/positive.sql", "> 0", "> 1", set()),
    ],
)  # fmt: skip
def test_an_edit_affects_dependent_tests(file: str, old: str, new: str, expected: set[str], tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    broken.write(root, {"macros/positive.sql": "{% macro positive(x) %}{{ x }} > 0{% endmacro %}\n"})
    before = looked(root)
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))

    assert changed_tests(before, looked(root)) == expected


def test_a_macro_affects_the_tests_of_its_callers(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    sql = (root / "models/totals.sql").read_text().replace("price > 0", "{{ positive('price') }}")
    macro = "{% macro positive(x) %}{{ x }} > 0{% endmacro %}\n"
    broken.write(root, {"macros/positive.sql": macro, "models/totals.sql": sql})
    before = looked(root)
    (root / "macros/positive.sql").write_text(macro.replace("> 0", "> 1"))

    assert changed_tests(before, looked(root)) == TOTALS


def following(root: Path) -> tuple[Iterator[Saved], Path]:
    file = tested.project(root) / "models/totals.sql"
    return file_watcher.saves(root), file


def test_a_save_is_reported_with_file_and_time(tmp_path: Path) -> None:
    found, file = following(tmp_path)
    file.write_text("select 1 as n")

    saved = next(found)
    assert saved.files == ("models/totals.sql",)
    assert 0 <= time.time() - saved.at < 1


def test_a_save_by_rename_is_one_save(tmp_path: Path) -> None:
    found, file = following(tmp_path)
    (tmp_path / "models/.totals.sql.swp").write_text("select 2 as n")
    (tmp_path / "models/.totals.sql.swp").replace(file)

    assert next(found).files == ("models/totals.sql",)


def test_a_briefly_empty_file_delays_the_save(tmp_path: Path) -> None:
    found, file = following(tmp_path)
    file.write_text("")
    timer = threading.Timer(0.05, file.write_text, ("select 3 as n",))
    timer.start()
    saved = next(found)
    timer.join()

    assert saved.files == ("models/totals.sql",)
    assert file_watcher.look(tmp_path)[str(file)][1] == len("select 3 as n")


@pytest.mark.slow
def test_a_deleted_file_is_reported(tmp_path: Path) -> None:
    found, file = following(tmp_path)
    file.unlink()

    assert next(found).files == ("models/totals.sql",)


def test_a_save_with_an_old_date_counts_from_its_detection(tmp_path: Path) -> None:
    found, file = following(tmp_path)
    os.utime(file, (1_000_000, 1_000_000))

    assert time.time() - next(found).at < 1


def test_watch_rejects_machine_output(tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path), "--watch", "--json")

    assert result.exit_code == 2
    assert "--watch can't be combined with" in result.output


@pytest.mark.slow
def test_watch_runs_affected_tests_survives_errors_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    command = [sys.executable, "-u", "-m", "sqlrun", "--project-dir", str(root), "test", "--watch"]
    # As a shell starts background processes: with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    signal.signal(signal.SIGINT, before)
    assert process.stdout is not None

    def until(text: str) -> str:
        said = []
        for line in process.stdout or ():
            said.append(line)
            if text in line:
                return "".join(said)
        raise AssertionError("".join(said))

    file = root / "models/totals.sql"
    right = file.read_text()
    try:
        assert "Done. PASS=3 FAIL=0" in until("Watching")
        file.write_text(right.replace("sum(price) as", "max(price) as"))
        said = until("after the save")
        assert "1 of 2 FAIL totals::prices_are_added" in said
        assert re.search(r"2 tests ran, \d+ ms after the save\.", said)
        file.write_text("selekt")
        until("Found 1 problem")
        file.write_text(right)
        assert "Done. PASS=2 FAIL=0" in until("after the save")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        process.stdout.close()
