"""Unit tests of models as items of pytest, for projects that opt in. Shell: pytest, the project, DuckDB.

pytest loads this module into every run, also of other projects: without the option it imports nothing else of sqlrun.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sqlrun.pipeline import Prepared
    from sqlrun.project import UnitTest

ASKED = "sqlrun"
ROOMS = ("models", "macros")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting."""
    group = parser.getgroup("sqlrun")
    group.addoption(
        "--sqlrun", action="store_true", help="Collect the unit tests of sqlrun's models (models/**/*.yml)."
    )
    group.addoption(
        "--sqlrun-coverage", action="store_true", help="Print the columns and branches that no unit test reaches."
    )
    parser.addini(ASKED, "Collect the unit tests of sqlrun's models, as --sqlrun does.", type="bool", default=False)


def is_asked(config: pytest.Config) -> bool:
    """Return whether the run collects the models' tests, by option or by setting."""
    return bool(config.getoption("--sqlrun") or config.getoption("--sqlrun-coverage") or config.getini(ASKED))


def pytest_configure(config: pytest.Config) -> None:
    """Add models/ and macros/ to the folders to collect, if these come from the setting `testpaths`."""
    if not is_asked(config) or config.args_source != pytest.Config.ArgsSource.TESTPATHS:
        return
    looked = [config.rootpath / arg for arg in config.args]
    for room in (config.rootpath / name for name in ROOMS):
        if room.is_dir() and not any(room.is_relative_to(folder) for folder in looked):
            config.args.append(str(room))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the YAML files of models and macros that have unit tests."""
    if file_path.suffix != ".yml" or not is_asked(parent.config):
        return None
    root = parent.config.rootpath
    if not any(file_path.is_relative_to(root / room) for room in ROOMS) or b"unit_tests" not in file_path.read_bytes():
        return None
    found: pytest.Collector = ModelFile.from_parent(parent, path=file_path)
    return found


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the coverage of all of the project's tests, also of tests that this process didn't run."""
    if not config.getoption("--sqlrun-coverage"):
        return
    terminalreporter.section("coverage of models")
    try:
        text = _project(config).coverage()
    except Wrong as error:
        text = str(error)
    terminalreporter.write_line(text)


class ModelFile(pytest.File):
    """A model's YAML: one item for each of its unit tests."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the tests, marked with their own tags and those of their model."""
        root = self.config.rootpath
        ran = _project(self.config)
        name = self.path.resolve().relative_to(root.resolve()).as_posix()
        for test in ran.tests:
            if test.place.file == name:
                item: ModelTest = ModelTest.from_parent(self, name=test.name, test=test, ran=ran)
                for tag in dict.fromkeys((*test.tags, *ran.tags(test))):
                    _mark(item, tag)
                yield item

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *more: Any, **how: Any) -> Any:
        """Return the errors of the project, as the command prints them."""
        if isinstance(excinfo.value, Wrong):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *more, **how)


class ModelTest(pytest.Item):
    """One unit test of a model."""

    def __init__(self, *, test: UnitTest, ran: Ran, **more: Any) -> None:
        super().__init__(**more)
        self._test, self._ran = test, ran

    def runtest(self) -> None:
        """Run the test. Raises: Wrong with the text of a failure."""
        text = self._ran.run(self._test)
        if text:
            raise Wrong(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *more: Any, **how: Any) -> Any:
        """Return the rows that differ, without a traceback."""
        if isinstance(excinfo.value, Wrong):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *more, **how)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the test's place in its YAML."""
        return self.path, self._test.place.line - 1, f"{self._test.model}::{self._test.name}"


class Wrong(Exception):
    """A failure with the text to print."""


class Ran:
    """A project, loaded once in a run, and its tests."""

    def __init__(self, root: Path) -> None:
        from sqlrun import pipeline
        from sqlrun.errors import ProjectError, UsageError
        from sqlrun.runtime.disk_cache import Cache
        from sqlrun.unit_tests.project_tests import tests_of

        self.problem = ""
        self.tests: tuple[UnitTest, ...] = ()
        self._prepared: Prepared | None = None
        try:
            self._prepared = pipeline.prepare(root, Cache.of(root))
        except (ProjectError, UsageError) as error:
            self.problem = f"{error}\n\nThe project doesn't load."
        else:
            self.tests = tests_of(self._prepared)

    def tags(self, test: UnitTest) -> tuple[str, ...]:
        """Return the tags of the test's model."""
        assert self._prepared is not None
        return tuple(self._prepared.graph.tags.get(test.model, ()))

    def run(self, test: UnitTest) -> str:
        """Run one test; return the text of its failure, empty if it passes."""
        from sqlrun.errors import SqlrunError
        from sqlrun.unit_tests.output.shown import failures
        from sqlrun.unit_tests.project_tests import known_of, results_of

        assert self._prepared is not None
        try:
            results = list(results_of(self._prepared, [test]))
        except SqlrunError as error:
            return str(error)
        return "\n".join(line.text for line in failures(results, known_of(self._prepared))).strip()

    def coverage(self) -> str:
        """Return the coverage as text, and write it to target/."""
        from sqlrun.unit_tests.output import coverage, covered

        assert self._prepared is not None
        found = coverage.measure(self._prepared, [each.name for each in self._prepared.queries], self.tests)
        coverage.write(Path(self._prepared.project.root), found)
        return "\n".join(line.text for line in covered.lines(found)).strip("\n")


RAN = pytest.StashKey[Ran]()


def _project(config: pytest.Config) -> Ran:
    """Return the project, loaded once.

    Raises: Wrong.
    """
    if RAN not in config.stash:
        config.stash[RAN] = Ran(config.rootpath)
    ran = config.stash[RAN]
    if ran.problem:
        raise Wrong(ran.problem)
    return ran


def _mark(item: pytest.Item, tag: str) -> None:
    """Mark a test with a tag, so that -m finds it, and register the mark if nothing else does."""
    if tag.startswith("_"):
        return  # pytest reserves such names
    declared = {line.partition(":")[0].partition("(")[0].strip() for line in item.config.getini("markers")}
    if tag not in declared:
        item.config.addinivalue_line("markers", f"{tag}: a tag of sqlrun's models and unit tests")
    item.add_marker(tag)
