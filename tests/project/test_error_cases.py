"""Each folder of cases/errors is a project broken in one way; `expected.txt` is what sqlrun prints.

`command.txt` names the stage that reports the mistake, if not `prepare`: `sources`, `profile NAME`, `build PROFILE`,
`lineage COLUMN`, `deps` or `operation MACRO`.

After a change of wording: SQLRUN_WRITE=1 pytest tests/project/test_error_cases.py, then read the diff.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sqlrun import project_files
from sqlrun.errors import ProjectError
from sqlrun.graph.lineage import Lineage, chosen
from sqlrun.load import load, profile
from sqlrun.packages import deps
from sqlrun.pipeline import prepare, prepare_to_build
from sqlrun.render import operation

CASES = Path(__file__).parents[1] / "cases" / "errors"
FOLDERS = sorted(path for path in CASES.iterdir() if path.is_dir())
DOCS = Path(__file__).parents[2] / "docs" / "errors.md"
PACKAGE = Path(__file__).parents[2] / "sqlrun"
# Reasons in `sqlrun explain` for a more expensive strategy; they don't fail a project.
REASONS = re.compile("SR5(1[0-9]|2[0-9]|4[0-9])")
# load reports SR110 for these words before it checks the suite; the codes are for suites made by Python code.
BEHIND_OTHERS = {"SR706", "SR707"}
# Raised during a tick: tests/plan/test_costs.py, tests/land/test_drift.py, tests/engines/test_foreign_writers.py,
# tests/runtime/test_own_folders.py, tests/runtime/test_stopping.py, tests/run/test_values.py,
# tests/sources/test_kafka.py, tests/sources/test_delta_ticks.py, tests/sources/test_whole_transactions.py,
# tests/engines/test_spark_jars.py, tests/engines/test_spark_reach.py, tests/storage/test_store_faults.py,
# tests/project/test_missing_packages.py, tests/publish/test_samples.py,
# tests/publish/test_deferral.py, tests/run/test_data_errors.py.
IN_A_TICK = {
    "SR133",
    "SR532", "SR533", "SR601", "SR602", "SR603", "SR736", "SR740", "SR741", "SR742", "SR743", "SR744", "SR745",
    "SR746", "SR747", "SR748", "SR749", "SR751", "SR752", "SR557", "SR755", "SR756", "SR780", "SR781", "SR782",
    "SR810", "SR811", "SR812", "SR813", "SR814", "SR815", "SR791", "SR792", "SR793", "SR794", "SR795", "SR796",
    "SR820", "SR821",
}  # fmt: skip


def printed(folder: Path) -> str:
    file = folder / "command.txt"
    command = file.read_text().split() if file.is_file() else ["prepare"]
    with pytest.raises(ProjectError) as caught:
        match command:
            case ["prepare"]:
                prepare(folder)
            case ["sources"]:
                raise ProjectError(load.missing_sources(project_files.project(folder)))
            case ["lineage", name]:
                prepared = prepare(folder)
                chosen(Lineage(prepared.project, prepared.graph, prepared.queries), name)
            case ["operation", name]:
                operation.run(
                    prepare(folder).project, name, {}, operation.Outside(lambda _: ((), []), lambda _: (), print)
                )
            case ["deps"]:
                deps.fetch_all(folder)
            case ["profile", name]:
                profile.load(folder, name)
            case ["build", name]:
                prepare_to_build(folder, name)
            case _:
                raise ValueError(f"{file}: {command}")
    assert caught.value.exit_code == 2
    return f"{caught.value}\n"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_output_is_the_expected_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The complete text, with places and carets."""
    monkeypatch.delenv("LAKE", raising=False)
    text = printed(folder)
    expected = folder / "expected.txt"
    if os.environ.get("SQLRUN_WRITE"):
        expected.write_text(text)

    assert text == expected.read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_is_called_after_its_code(folder: Path) -> None:
    """The first word of its name is the code that it shows, and it has no other mistake."""
    codes = re.findall(r"^SR\d{3}", (folder / "expected.txt").read_text(), re.MULTILINE)

    assert folder.name.startswith("all_") or set(codes) == {folder.name[:5]}


def codes_in_source() -> set[str]:
    return {code for file in PACKAGE.rglob("*.py") for code in re.findall(r"\bSR\d{3}\b", file.read_text())}


def test_every_code_has_a_case() -> None:
    """Every message is read by a person before a user sees it."""
    shown = {folder.name[:5] for folder in FOLDERS} | BEHIND_OTHERS | IN_A_TICK

    assert sorted(code for code in codes_in_source() - shown if not REASONS.match(code)) == []


def test_every_code_is_documented() -> None:
    """docs/errors.md has one line per code, and no code that was removed."""
    listed = re.findall(r"^\| \[(SR\d{3})\]", DOCS.read_text(), re.MULTILINE)

    assert listed == sorted(codes_in_source())


def test_errors_come_in_file_order() -> None:
    """All mistakes of a project are reported at once, file by file, line by line."""
    for folder in FOLDERS:
        text = (folder / "expected.txt").read_text()
        places = [
            (m[1], int(m[2]), int(m[3])) for m in re.finditer(r"^SR\d{3} (\S+):(\d+):(\d+)  ", text, re.MULTILINE)
        ]

        assert places == sorted(places)
        assert places
