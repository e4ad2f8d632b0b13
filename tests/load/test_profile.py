"""Profiles; the problems are in tests/cases/errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun.check.check_plan import Terms
from sqlrun.cli.main import main
from sqlrun.engines import factory as engine_factory
from sqlrun.errors import ProjectError
from sqlrun.load import profile
from sqlrun.project import DEFAULTS
from sqlrun.runtime import old_names
from tests.support import shops
from tests.support.script import START

ROOT = Path(__file__).parents[2]


def write(folder: Path, text: str) -> Path:
    (folder / "profiles").mkdir()
    (folder / "profiles" / "own.yml").write_text(text)
    return folder


def test_the_environment_fills_values_in(tmp_path, monkeypatch):
    monkeypatch.setenv("LAKE", "lake")
    monkeypatch.setenv("THREADS", "3")
    text = "engine: spark\nwarehouse: x/${LAKE}/y\nthreads: ${THREADS}\n"
    text += "settings: {a.b: '${LAKE}-$${LAKE}', c: true, d: 4}\n"
    found = profile.load(write(tmp_path, text), "own")

    assert (found.name, found.engine, found.threads) == ("own", "spark", 3)
    assert found.warehouse == str(tmp_path.resolve() / "x" / "lake" / "y")
    assert found.settings == {"a.b": "lake-${LAKE}", "c": "true", "d": "4"}


def test_missing_settings_have_the_defaults(tmp_path):
    found = profile.load(write(tmp_path, "engine: duckdb\nwarehouse: lake\n"), "own")

    given = {"name": found.name, "engine": found.engine, "warehouse": found.warehouse}
    assert found == replace(DEFAULTS, **given)
    assert Terms(START).check_timeout == DEFAULTS.check_timeout


@pytest.mark.parametrize(
    "line", ["engine: ${SECRET}", "threads: ${SECRET}", "warehouse: 'hdfs://${SECRET}'", "warehouse: 's3://${SECRET}%'"]
)
def test_a_value_from_the_environment_is_never_shown(tmp_path, monkeypatch, line):
    monkeypatch.setenv("SECRET", "hunter2")
    lines = {"engine": "engine: spark", "warehouse": "warehouse: lake", line.partition(":")[0]: line}

    with pytest.raises(ProjectError) as caught:
        profile.load(write(tmp_path, "\n".join(lines.values())), "own")

    assert [problem.code for problem in caught.value.problems] in (["SR131"], ["SR790"])
    assert "${SECRET}" in str(caught.value) and "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("s3:///lake/a", "SR790", "names no bucket"),
        ("s3://my lake/a", "SR790", "a bucket's name has only letters"),
        ("hdfs://lake/a", "SR790", "neither a folder nor on a known object store"),
        ("${NOTHING}", "SR132", "the environment variable `NOTHING` is not set"),
    ],
)
def test_a_wrong_warehouse_with_options_of_a_store_is_one_problem(tmp_path, url, code, message):
    text = f"engine: duckdb\nwarehouse: {url}\nstorage: {{region: eu-central-1}}\n"

    with pytest.raises(ProjectError, match=message) as caught:
        profile.load(write(tmp_path, text), "own")

    assert [problem.code for problem in caught.value.problems] == [code]


@pytest.mark.parametrize("folder", [".", "..", "/", "models/..", "'${NOTHING}'"])
def test_a_warehouse_never_holds_the_project(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("NOTHING", "")

    with pytest.raises(ProjectError, match="SR131"):
        profile.load(write(tmp_path, f"engine: duckdb\nwarehouse: {folder}\n"), "own")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "SR103"),
        ("engine: spark\n", "SR104"),
        ("engine: [\n", "SR101"),
        ("engine: spark\nwarehouse: a\nsettings: [a]\n", "SR103"),
        ("engine: spark\nwarehouse: a\nsettings: {a: [1]}\n", "SR103"),
        ("engine: spark\nwarehouse: a\nthread: 2\n", "SR102"),
        ("engine: spark\nwarehouse: a\nthreads: 0\n", "SR131"),
        ("engine: spark\nwarehouse: ${A-b}\n", "SR132"),
    ],
)
def test_odd_profiles_are_one_problem(tmp_path, text, code):
    with pytest.raises(ProjectError) as caught:
        profile.load(write(tmp_path, text), "own")

    assert [problem.code for problem in caught.value.problems] == [code]


@pytest.mark.parametrize("value", ["${NOT_SET}", "[a]", "{a: b}"])
@pytest.mark.parametrize("key", ["engine", "landing", "delta_writer"])
def test_a_choice_that_cannot_be_read_is_one_problem(tmp_path, key, value):
    """The unset variable, or the list, is reported; not that its value is an invalid choice."""
    text = {"engine": "auto", "warehouse": "w", key: value}
    with pytest.raises(ProjectError) as caught:
        profile.load(write(tmp_path, "".join(f"{name}: {given}\n" for name, given in text.items())), "own")

    assert {problem.code for problem in caught.value.problems} <= {"SR103", "SR132"}
    assert len(set(caught.value.problems)) == 1


def test_a_profile_name_is_not_a_path(tmp_path):
    (tmp_path / "secret.yml").write_text("engine: spark\nwarehouse: a\n")

    with pytest.raises(ProjectError, match="SR130"):
        profile.load(write(tmp_path, ""), "../secret")


@pytest.mark.parametrize(("name", "engine"), [("local", "spark"), ("duckdb", "duckdb")])
def test_the_profiles_of_the_project_work_unchanged(name, engine):
    found = profile.load(ROOT, name)

    assert (found.engine, found.warehouse) == (engine, str(ROOT.resolve() / "warehouse" / name))


def test_settings_that_duckdb_rejects_are_reported_before_a_build(tmp_path, monkeypatch):
    """Not by each seed and landing of a running tick; a value from the environment isn't shown."""
    monkeypatch.setenv("LIMIT", "hunter2")
    text = "engine: auto\nwarehouse: lake\nsettings:\n  threads: 2\n  memory_limit: ${LIMIT}\n  memory_limits: 1GB\n"
    root = write(tmp_path, text + "  spark.driver.memory: 4g\n")
    found = engine_factory.refused(profile.load(root, "own"))

    error = profile.refusal(root, "own", found)

    assert list(found) == ["memory_limit", "memory_limits"]
    assert [(problem.code, problem.place.line) for problem in error.problems] == [("SR131", 5), ("SR131", 6)]
    assert "`memory_limits: 1GB`: " in str(error) and "${LIMIT}" in str(error) and "hunter2" not in str(error)


def test_a_spark_setting_is_refused_with_duckdb_alone(tmp_path):
    root = write(tmp_path, "engine: duckdb\nwarehouse: lake\nsettings: {spark.driver.memory: 4g}\n")

    error = profile.refusal(root, "own", engine_factory.refused(profile.load(root, "own")))

    assert "for the engines spark and auto" in str(error)


@pytest.mark.parametrize("text", ["settings: {memory_limit: 2GB, threads: 2}", "settings: {}", ""])
def test_settings_that_duckdb_accepts_are_accepted(tmp_path, text):
    root = write(tmp_path, f"engine: duckdb\nwarehouse: lake\n{text}\n")

    assert engine_factory.refused(profile.load(root, "own")) == {}


def test_a_build_with_rejected_settings_writes_nothing(tmp_path):
    made = shops.project(tmp_path / "shops")
    (made / "profiles" / "local.yml").write_text("engine: duckdb\nwarehouse: lake\nsettings: {memory_limit: abc}\n")

    result = CliRunner().invoke(main, ["--project-dir", str(made), "build"])

    assert result.exit_code == 2
    assert "DuckDB rejects the setting `memory_limit: abc`" in result.output and "Running with" not in result.output
    assert not (made / "lake").exists()


def test_an_old_key_works_and_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old_names.begin()
    root = write(tmp_path, "engine: duckdb\nwarehouse: lake\nmaintain_every: 7\n")

    assert profile.load(root, "own").vacuum_every == 7
    assert profile.load(root, "own").vacuum_every == 7
    warning = "Warning: profiles/own.yml:3: `maintain_every` is now `vacuum_every`."
    assert capsys.readouterr().err == f"{warning} The old name works in this version only.\n"


def test_a_wrong_value_under_an_old_key_is_shown_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        profile.load(write(tmp_path, "engine: duckdb\nwarehouse: lake\nmaintain_every: often\n"), "own")

    assert [(p.code, str(p.place)) for p in caught.value.problems] == [("SR131", "profiles/own.yml:3:17")]


def test_a_profile_has_an_old_key_or_its_new_name(tmp_path: Path) -> None:
    text = "engine: duckdb\nwarehouse: lake\nmaintain_every: 7\nvacuum_every: 8\n"
    with pytest.raises(ProjectError) as caught:
        profile.load(write(tmp_path, text), "own")

    (problem,) = caught.value.problems
    assert (problem.code, str(problem.place)) == ("SR131", "profiles/own.yml:3:1")
    assert "has both" in problem.message


def test_an_old_command_works_and_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new, old = (CliRunner().invoke(main, [command, "--keep-ticks", "3"]) for command in ("vacuum", "maintain"))

    warning = "Warning: `sqlrun maintain` is now `sqlrun vacuum`. The old name works in this version only.\n"
    assert old.exit_code == new.exit_code == 2
    assert old.stderr == warning + new.stderr and old.stdout == new.stdout
    assert "  maintain  " not in CliRunner().invoke(main, ["--help"]).output


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("copies", "copies"), ("${FORM}", True)])
def test_folders_have_names_or_copies(
    tmp_path: Path, text: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORM", "true")
    found = profile.load(write(tmp_path, f"engine: duckdb\nwarehouse: lake\ncurrent_folders: {text}\n"), "own")
    assert found.current_folders == value


def test_another_form_of_folders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="must be true, false or copies, not `links`"):
        profile.load(write(tmp_path, "engine: duckdb\nwarehouse: lake\ncurrent_folders: links\n"), "own")
