"""Archive of a JVM's classes: its path, which JVMs map it, and the consequences of a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlrun.engines.spark import class_archive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """Return a JDK in which `jcmd` writes its arguments to the file that it gets."""
    tools = tmp_path / "jdk" / "bin"
    tools.mkdir(parents=True)
    (tmp_path / "jdk" / "lib").mkdir()
    (tmp_path / "jdk" / "lib" / "modules").write_text("17")
    (tools / "java").write_text("")
    (tools / "jcmd").write_text('#!/bin/sh\necho "$1 $2 $3" > "$4"\n')
    (tools / "jcmd").chmod(0o755)
    return tools / "java"


def file_of(java: Path, folder: Path, options: str = "", jars: str = "jars") -> Path:
    return class_archive.file_of(str(java), folder / jars, options, {"XDG_CACHE_HOME": str(folder / "cache")})


def test_the_first_jvm_records_and_the_next_one_maps(java: Path, tmp_path: Path) -> None:
    file = file_of(java, tmp_path)
    assert class_archive.options_for(file, record=False) == ""
    assert class_archive.options_for(file, record=True) == class_archive.RECORDING

    assert class_archive.keep(str(java), 42, file)
    assert file.read_text() == "42 VM.cds dynamic_dump\n"
    assert f"-XX:SharedArchiveFile={file} " in class_archive.options_for(file, record=True)
    assert list(file.parent.iterdir()) == [file]


def test_each_java_jars_and_options_have_their_own_archive(java: Path, tmp_path: Path) -> None:
    """The previous file is deleted when the new one exists."""
    before = file_of(java, tmp_path)
    assert class_archive.keep(str(java), 1, before)
    others = {file_of(java, tmp_path, "-XX:+UseZGC"), file_of(java, tmp_path, jars="others")}
    os.utime(tmp_path / "jdk" / "lib" / "modules", ns=(1, 1))
    others.add(file_of(java, tmp_path))
    assert len(others | {before}) == 4
    assert class_archive.keep(str(java), 2, file_of(java, tmp_path))
    assert list(before.parent.iterdir()) == [file_of(java, tmp_path)]


@pytest.mark.parametrize("tool", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho half > $4\nexit 1\n", None, "no program"])
def test_a_failure_leaves_no_archive(tool: str | None, java: Path, tmp_path: Path) -> None:
    if tool is None:
        java.with_name("jcmd").unlink()
    else:
        java.with_name("jcmd").write_text(tool)
    file = file_of(java, tmp_path)
    assert not class_archive.keep(str(java), 42, file)
    assert not file.parent.exists() or list(file.parent.iterdir()) == []


def test_a_path_with_blanks_is_not_used(java: Path, tmp_path: Path) -> None:
    file = class_archive.file_of(str(java), tmp_path, "", {"XDG_CACHE_HOME": str(tmp_path / "my cache")})
    assert class_archive.keep(str(java), 42, file)
    assert class_archive.options_for(file, record=True) == ""
