"""Unit tests in a project's folder, parsed once and cached. Shell: the analyst's folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from sqlrun.errors import Place, Problem
from sqlrun.load.contract_files import facts
from sqlrun.load.folder import Folder
from sqlrun.load.yaml_reader import Reader
from sqlrun.project import Column, Macro, Model, Project, UnitTest
from sqlrun.test_definitions.names import Fixture, Input, Known

FIXTURES = "tests/fixtures"
_Tested = TypeVar("_Tested", Model, Macro)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Written:
    """A YAML file with tests, of models or of macros."""

    file: str
    text: str
    of_macros: bool = False


def attach(folder: Folder, project: Project, contracts: Mapping[str, str]) -> Project:
    """Return the project with its unit tests: those of models from contracts, those of macros from their own files."""
    tests: dict[tuple[str, bool], list[UnitTest]] = {}
    written = [Written(file, text) for file, text in contracts.items()]
    for test in read(folder, project, (*written, *macro_files(folder))):
        tests.setdefault((test.model, bool(test.macro)), []).append(test)

    def tested(noun: _Tested, is_macro: bool) -> _Tested:
        found = tests.get((noun.name, is_macro))
        return replace(noun, unit_tests=tuple(found)) if found else noun

    models = tuple(tested(model, False) for model in project.models)
    return replace(project, models=models, macros=tuple(tested(macro, True) for macro in project.macros))


def read(folder: Folder, project: Project, files: Iterable[Written]) -> tuple[UnitTest, ...]:
    """Return the tests of files in their order; two tests of one name are a problem (SR111), also in two files."""
    files = tuple(files)
    known = Known(
        inputs=dict(inputs(project)),
        macros=tuple(macro.name for macro in project.macros),
        fixtures=_fixtures(folder, files),
        functions=project.functions,
        vars=_vars(project) if any("overrides" in written.text for written in files) else (),
        disabled=project.disabled,
    )
    tests: list[UnitTest] = []
    named = {key: frozenset(_WORD.findall(key)[1:]) for key in known.inputs}
    for written in files:
        source: list[object] = [written.file, written.text, _dependencies(written.text, known, named)]
        if written.of_macros:
            source += [[[macro.name, macro.text] for macro in project.macros], facts(project.seen_by_templates)]
        make = partial(_tests, folder, written, known, project)
        tests += folder.cached("tests", source, tuple[UnitTest, ...], make)
    _unique(folder, tests, {written.file: written.text for written in files})
    return tuple(tests)


def inputs(project: Project) -> Iterator[tuple[str, Input]]:
    """Yield each input that a test can give rows of, with its name in tests."""
    for model in project.models:
        yield f"ref('{model.name}')", Input("model", model.columns, () if model.repeats else model.grain)
    for seed in project.seeds:
        names = [column.name for column in seed.columns]
        rows = tuple(dict(zip(names, row, strict=True)) for row in seed.rows)
        yield f"ref('{seed.name}')", Input("seed", seed.columns, seed.grain, rows)
    for source in project.sources:
        yield f"source('{source.group}', '{source.name}')", Input("source" if source.lands else "table", source.columns)


def _vars(project: Project) -> set[str]:
    """Return the names of the vars that the project sets or any template uses."""
    texts = [*(model.sql for model in project.models), *(macro.text for macro in project.macros)]
    return {*project.vars, *(name for text in texts for name in re.findall(r"\bvar\(\s*['\"](\w+)['\"]", text))}


def _fixtures(folder: Folder, files: tuple[Written, ...]) -> dict[str, tuple[Fixture, ...]]:
    """Return the fixtures by file name; empty if no test uses one."""
    found: dict[str, tuple[Fixture, ...]] = {}
    words = {word for written in files if "fixture" in written.text for word in _words(written.text)}
    for file in folder.files(FIXTURES) if words else ():
        if file.suffix in (".csv", ".sql") and _words(file.stem) <= words:
            text = folder.text(file)
            if text is not None:
                found[file.name] = (*found.get(file.name, ()), Fixture(folder.name(file), text))
    return found


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _dependencies(text: str, known: Known, named: Mapping[str, frozenset[str]]) -> list[object]:
    """Return what a file's tests can depend on: all that the file names, or everything if it has escapes."""
    words, escapes = _words(text), "\\" in text
    inputs = [[key, _facts(known.inputs[key])] for key, parts in named.items() if escapes or parts <= words]
    fixtures = [
        [name, [[one.file, one.text] for one in found]]
        for name, found in known.fixtures.items()
        if escapes or _words(name.rpartition(".")[0]) <= words
    ]
    others = [sorted(known.macros), sorted(known.vars)] if "overrides" in words or escapes else []
    return [inputs, fixtures, others, known.functions, known.disabled]


def _facts(one: Input) -> list[object]:
    def shape(columns: tuple[Column, ...]) -> list[list[str]]:
        return [[column.name, column.type] for column in columns]

    return [one.kind, shape(one.columns), one.grain, [list(row.values()) for row in one.rows]]


def macro_files(folder: Folder) -> Iterator[Written]:
    """Yield the files in macros/ that can have tests of macros."""
    for file in folder.files("macros", ".yml"):
        text = folder.text(file)
        if text is not None:
            yield Written(folder.name(file), text, True)


def _tests(folder: Folder, written: Written, known: Known, project: Project) -> tuple[UnitTest, ...]:
    from sqlrun.test_definitions.declared import unit_tests
    from sqlrun.test_definitions.declared_macros import macro_tests

    # Syntax errors of a contract are reported already, when it was parsed.
    reader = Reader(written.file, written.text, folder.problems if written.of_macros else [])
    reader.problems = folder.problems
    return macro_tests(reader, known, project) if written.of_macros else unit_tests(reader, known)


def _unique(folder: Folder, tests: list[UnitTest], texts: Mapping[str, str]) -> None:
    first: dict[str, Place] = {}
    for test in tests:
        other = first.setdefault(test.name, test.place)
        if other is not test.place and test.name:
            lines = texts[test.place.file].split("\n")
            message = f"duplicate unit test `{test.name}`, also at {other}"
            folder.problems.append(
                Problem("SR111", test.place, message, "Rename one of them.", lines[test.place.line - 1])
            )
