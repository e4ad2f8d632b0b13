"""Jars are fetched once, or a test says why it goes without; with a Maven that fetches nothing."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.servers import jars
from tests.support.servers.jars import Jars, MissingError

pytestmark = pytest.mark.slow

WANTED = Jars("some-1.0", ("org.some:one:1.0", "org.some:two:1.0"))
# Each call takes a moment, writes a jar, and is counted.
MAVEN = """#!/usr/bin/env bash
echo "$@" >> {folder}/calls
sleep 0.2
for argument in "$@"; do
    case "$argument" in
    -DoutputDirectory=*) touch "${{argument#*=}}/$RANDOM$RANDOM.jar" ;;
    esac
done
{end}
"""


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Path:
    """A machine with Java and nothing fetched; what it has is in a folder."""
    for tool in ("bash", "env", "sleep", "touch"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("CI", raising=False)
    program(tmp_path / "java", "")
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(text or "#!/usr/bin/env bash\n")
    path.chmod(0o755)


def maven(machine: Path, end: str = "exit 0") -> None:
    program(machine / "mvn", MAVEN.format(folder=machine, end=end))


def calls(machine: Path) -> int:
    return len((machine / "calls").read_text().splitlines())


def test_jars_are_fetched_once(machine):
    maven(machine)

    with ThreadPoolExecutor(4) as workers:
        folders = set(workers.map(jars.fetched, [WANTED] * 4))

    assert calls(machine) == len(WANTED.coordinates)
    assert folders == {machine / "cache" / "sqlrun-tests" / "some-1.0"}
    assert len(WANTED.files()) == 2
    (machine / "mvn").unlink()
    assert jars.needed(WANTED) in folders


def test_other_coordinates_are_fetched_again(machine):
    maven(machine)
    jars.fetched(WANTED)

    jars.fetched(Jars("some-1.0", ("org.some:one:1.1",)))

    assert calls(machine) == 3


def test_half_a_fetch_leaves_nothing(machine):
    maven(machine, "exit 1")
    with pytest.raises(MissingError):
        jars.fetched(WANTED)
    assert not WANTED.folder().exists()

    maven(machine)

    assert len(WANTED.files()) == 2


@pytest.mark.parametrize("ci", ["", "true"])
@pytest.mark.parametrize("lacks", ["java", "mvn"])
def test_a_machine_without_the_tools_skips(machine, monkeypatch, ci, lacks):
    monkeypatch.setenv("CI", ci)
    maven(machine)
    (machine / lacks).unlink()

    with pytest.raises(pytest.skip.Exception, match="apt-get install"):
        jars.needed(WANTED)


def test_a_failed_fetch_skips_but_fails_in_ci(machine, monkeypatch):
    maven(machine, "echo '[ERROR] Could not find artifact'; exit 1")
    with pytest.raises(pytest.skip.Exception, match="Could not find artifact"):
        jars.needed(WANTED)

    monkeypatch.setenv("CI", "true")

    with pytest.raises(MissingError, match="Could not find artifact"):
        jars.needed(WANTED)


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_the_target_fails_in_ci_alone(machine, monkeypatch, capsys, ci, code):
    maven(machine, "exit 1")
    monkeypatch.setenv("CI", ci)

    assert jars.main() == code

    assert capsys.readouterr().err.count("are skipped") == len(jars.ALL)
