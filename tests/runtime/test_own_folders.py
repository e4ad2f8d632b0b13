"""A link in place of anything that sqlrun writes or deletes: no command writes or deletes at its destination."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from tests.support import broken, shops

pytestmark = pytest.mark.slow

COMMANDS = [["build", "--skip-tests"], ["compile"], ["test"], ["plan"], ["history"], ["ls"]]
WRITERS = [["build", "--skip-tests"], ["vacuum"], ["rollback", "--to", "1"], ["doctor", "--repair"],
           ["clean", "--warehouse"], ["env", "drop", "dev"]]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = shops.project(tmp_path_factory.mktemp("made") / "shops")
    (root / "data/orders/1.jsonl").write_text('{"id": "1", "shop": "ada", "amount": "1.00", "guest": "x"}\n')
    for words in (["build", "--as-of", "2026-03-10T12:00"], ["build", "--env", "dev", "--as-of", "2026-03-10T12:00"]):
        assert run(root, words).exit_code == 0
    assert run(root, ["compile"]).exit_code == 0
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "shops", symlinks=True)
    return tmp_path / "shops"


def run(root: Path, words: list[str]) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), *words])


def led_away(root: Path, place: Path) -> Path:
    """Put a link in a place, to its former content, moved outside of the project, or to foreign files."""
    outside = root.parent / "outside"
    if place.exists():
        place.rename(outside)
    else:
        broken.write(outside, {"mine.txt": "mine"})
    place.symlink_to(outside)
    return outside


def state(folder: Path) -> dict[str, bytes]:
    files = [folder] if folder.is_file() else [file for file in folder.rglob("*") if file.is_file()]
    return {str(file): file.read_bytes() for file in files}


@pytest.mark.parametrize(
    "place", ["target", "target/compiled", "target/checks", "target/report.html", "target/cache.jsonl"]
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_writes_through_a_link_in_target(root: Path, place: str, command: list[str]) -> None:
    outside = led_away(root, root / place)
    before = state(outside), state(root / "warehouse")
    shown = run(root, command)
    assert shown.exit_code == 2 and "SR743" in shown.output, shown.output
    assert (state(outside), state(root / "warehouse")) == before
    assert run(root, ["--no-cache", *command]).exit_code == 2

    assert run(root, ["clean"]).exit_code == 0
    assert state(outside) == before[0] and not (root / "target").exists()
    assert run(root, ["build", "--as-of", "2026-03-10T12:05"]).exit_code == 0


def places(warehouse: Path) -> list[Path]:
    """Return everything in a warehouse down to its tables' logs, and a landing's batches."""
    found = [*warehouse.glob("*"), *warehouse.glob("*/*"), *warehouse.glob("*/*/_delta_log")]
    return sorted({*found, *warehouse.glob("_sqlrun/checkpoints/**"), *warehouse.glob("_sqlrun/environments/*")})


@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
def test_no_command_writes_or_deletes_through_a_link_in_a_warehouse(root: Path, command: list[str]) -> None:
    warehouse, outside = root / "warehouse", root.parent / "outside"
    for place in places(warehouse):
        led_away(root, place)
        before = state(warehouse), state(outside)
        shown = run(root, command)
        assert shown.exit_code == 2 and "SR743" in shown.output, (place, shown.output)
        assert (state(warehouse), state(outside)) == before
        place.unlink()
        outside.rename(place)


def test_the_warehouse_itself_may_be_a_link(root: Path) -> None:
    led_away(root, root / "warehouse")

    assert run(root, ["build", "--as-of", "2026-03-10T12:05"]).exit_code == 0
    assert run(root, ["vacuum"]).exit_code == 0
    assert run(root, ["doctor"]).exit_code == 0


@pytest.mark.parametrize("to", ["missing", "target"])
def test_a_broken_link_is_reported(root: Path, to: str) -> None:
    shutil.rmtree(root / "target")
    (root / "target").symlink_to(to)
    shown = run(root, ["build"])

    assert shown.exit_code == 2 and "SR743" in shown.output and "Traceback" not in shown.output
    assert run(root, ["clean"]).exit_code == 0
    assert not (root / "target").is_symlink()
