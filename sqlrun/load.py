"""The project folder to nouns, with every problem in it. Shell: the analyst's folders."""

from __future__ import annotations

import csv
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from sqlrun import contract
from sqlrun.contract import Contract, configured
from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.model import Column, Macro, Model, Project, Seed, Source, Suite, UnitTest
from sqlrun.seeds import typed
from sqlrun.yaml_values import Reader

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same parser, from PyPI
    import tomli as tomllib

SETTINGS = ("name", "profile", "vars", "models")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A project as far as it could be read, and what is wrong with it."""

    project: Project
    problems: tuple[Problem, ...]


def project(root: Path) -> Project:
    """Read the project; raise one `ProjectError` with all problems (SR1xx)."""
    loaded = read(root)
    if loaded.problems:
        raise ProjectError(loaded.problems)
    return loaded.project


def read(root: Path) -> Loaded:
    """Read the project and collect its problems.

    Raises: ProjectError at once where there is no project at all (SR100).
    """
    root = root.resolve()
    problems: list[Problem] = []
    settings = _settings(root, problems)
    folders = settings.get("models", {})
    sources = [s for r in _yaml_files(root, "models", "_sources.yml", problems) for s in contract.sources(r)]
    models, tests = _models(root, folders, problems)
    seeds = _seeds(root, problems)
    _unique([*((m.name, m.file) for m in models), *((s.name, s.file) for s in seeds)], problems)
    models = _with_tests(models, seeds, sources, tests, problems)
    made = Project(
        root=str(root),
        name=str(settings.get("name", root.name)),
        profile=str(settings.get("profile", "local")),
        vars=settings.get("vars", {}),
        models=tuple(models),
        seeds=tuple(seeds),
        sources=tuple(sources),
        macros=tuple(_macros(root, problems)),
        suites=tuple(_suites(root, models, problems)),
    )
    return Loaded(made, tuple(problems))


def missing_sources(nouns: Project) -> tuple[Problem, ...]:
    """Find the sources whose folder is not there."""
    found = []
    for source in nouns.sources:
        if not (Path(nouns.root) / source.path).is_dir():
            hint = "Create the folder, correct `path:`, or write a sample: sqlrun simulate"
            message = f"source {source.group}.{source.name}: the folder {source.path} does not exist"
            found.append(Problem("SR120", source.place, message, hint))
    return tuple(found)


def _settings(root: Path, problems: list[Problem]) -> dict[str, Any]:
    file = root / "pyproject.toml"
    if not file.is_file():
        hint = "Run sqlrun in the project's folder, or name it: sqlrun --project-dir FOLDER ..."
        raise ProjectError([Problem("SR100", Place("pyproject.toml"), "there is no pyproject.toml here", hint)])
    text = file.read_text(encoding="utf-8")
    try:
        tool = tomllib.loads(text).get("tool", {}).get("sqlrun")
    except tomllib.TOMLDecodeError as error:
        raise ProjectError([Problem("SR100", Place("pyproject.toml"), f"TOML: {error}", "")]) from None
    if tool is None:
        hint = 'Add [tool.sqlrun] with name = "..." to it.'
        raise ProjectError([Problem("SR100", Place("pyproject.toml"), "pyproject.toml has no [tool.sqlrun]", hint)])
    for key in tool:
        if key not in SETTINGS:
            near = difflib.get_close_matches(key, SETTINGS, 1)
            hint = f"Known keys: {', '.join(SETTINGS)}." + (f" Did you mean `{near[0]}`?" if near else "")
            problems.append(_toml_problem(text, key, f"unknown key `{key}` in [tool.sqlrun]", hint))
    for folder, layer in tool.get("models", {}).items():
        for key, value in layer.items():
            choices = contract.CHOICES.get(key)
            if key not in contract.CONFIG_KEYS:
                hint = f"Known keys: {', '.join(contract.CONFIG_KEYS)}."
                problems.append(_toml_problem(text, key, f"unknown key `{key}` in [tool.sqlrun.models.{folder}]", hint))
            elif choices and value not in choices:
                message = f"`{key} = {value}` is none of {', '.join(choices)}"
                problems.append(_toml_problem(text, key, message, ""))
    return dict(tool)


def _toml_problem(text: str, key: str, message: str, hint: str) -> Problem:
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("[tool.sqlrun")), 0)
    for number in range(start, len(lines)):
        if lines[number].strip().strip("[]").split("=")[0].strip().split(".")[-1] == key:
            return Problem("SR102", Place("pyproject.toml", number + 1), message, hint, lines[number])
    return Problem("SR102", Place("pyproject.toml"), message, hint)


def _name(root: Path, file: Path) -> str:
    return file.relative_to(root).as_posix()


def _text(root: Path, file: Path, problems: list[Problem]) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problems.append(Problem("SR101", Place(_name(root, file)), "the file is not UTF-8 text", "Save it as UTF-8."))
        return ""


def _yaml_files(root: Path, folder: str, pattern: str, problems: list[Problem]) -> Iterator[Reader]:
    for file in sorted((root / folder).rglob(pattern)):
        yield Reader(_name(root, file), _text(root, file, problems), problems)


def _models(
    root: Path, folders: Mapping[str, Mapping[str, object]], problems: list[Problem]
) -> tuple[list[Model], list[tuple[Reader, UnitTest]]]:
    found: list[Model] = []
    tests: list[tuple[Reader, UnitTest]] = []
    for file in sorted((root / "models").rglob("*.yml")):
        if file.name != "_sources.yml" and not file.with_suffix(".sql").is_file():
            hint = "Write the query beside it, or remove the file; sources stand in _sources.yml."
            problems.append(Problem("SR105", Place(_name(root, file)), f"there is no {file.stem}.sql beside it", hint))
    for file in sorted((root / "models").rglob("*.sql")):
        yml = file.with_suffix(".yml")
        if not yml.is_file():
            hint = f"Write {_name(root, yml)}:\n" + contract.skeleton(file.stem)
            problems.append(Problem("SR106", Place(_name(root, file)), "the model has no contract beside it", hint))
            found.append(_bare(root, file, problems))
            continue
        reader = Reader(_name(root, yml), _text(root, yml, problems), problems)
        made = _contract(reader, "models", file.stem, contract.MODEL_KEYS, ("unit_tests",))
        if made is None:
            found.append(_bare(root, file, problems))
            continue
        layers = [layer for name, layer in folders.items() if f"/{name}/" in f"/{_name(root, file)}"]
        sql = _text(root, file, problems)
        config = configured(*layers, made.config)
        found.append(
            Model(
                file.stem, _name(root, file), sql, reader.file, made.description, made.grain, made.repeats,
                made.columns, config, (),
            )
        )  # fmt: skip
        tests += [(reader, test) for test in contract.unit_tests(reader, reader.root)]
    return found, tests


def _bare(root: Path, file: Path, problems: list[Problem]) -> Model:
    """Keep a model whose contract can't be read, so that refs to it are not called unknown."""
    sql = _text(root, file, problems)
    return Model(file.stem, _name(root, file), sql, "", "", (), False, (), configured(), ())


def _contract(
    reader: Reader, key: str, stem: str, known: Iterable[str], also: tuple[str, ...] = ()
) -> Contract | None:
    """Read the one entry that a model's or a seed's YAML has."""
    if reader.root is None:
        return None
    top = reader.mapping(reader.root, Place(reader.file), "the file", ("version", key, *also), (key,))
    entries = reader.items(top, key, "the file")
    if not entries:
        return None
    node, place = entries[0]
    reader.mapping(node, place, f"an entry of `{key}`", known, ("name", "description", "columns"))
    made = Contract(reader, node, place)
    if made.name != stem:
        message = f"the contract is for `{made.name}`, the file is called {stem}"
        reader.problem("SR107", reader.place(node, "name"), message, f"Write `name: {stem}`, or rename the files.")
    if len(entries) > 1:
        reader.problem("SR107", entries[1][1], "a file holds one contract", "Give each its own file.")
    return made


def _unique(names: list[tuple[str, str]], problems: list[Problem]) -> None:
    first: dict[str, str] = {}
    for name, file in names:
        if name in first:
            hint = "Names are unique over all folders, models and seeds together: rename one."
            problems.append(Problem("SR111", Place(file), f"`{name}` is also the name of {first[name]}", hint))
        first.setdefault(name, file)


def _with_tests(
    models: list[Model],
    seeds: list[Seed],
    sources: list[Source],
    tests: list[tuple[Reader, UnitTest]],
    problems: list[Problem],
) -> list[Model]:
    known: dict[str, tuple[Column, ...]] = {f"ref('{n.name}')": n.columns for n in (*models, *seeds)}
    known.update({f"source('{s.group}', '{s.name}')": s.columns for s in sources})
    by_model: dict[str, list[UnitTest]] = {model.name: [] for model in models}
    for reader, test in tests:
        if test.model not in by_model:
            near = difflib.get_close_matches(test.model, list(by_model), 1)
            hint = f"Did you mean `{near[0]}`?" if near else f"Models: {', '.join(sorted(by_model))}."
            reader.problem("SR112", test.place, f"unit test {test.name} is of an unknown model `{test.model}`", hint)
            continue
        by_model[test.model].append(test)
        _check_columns(reader, test, known)
    del problems
    return [replace(model, unit_tests=tuple(by_model[model.name])) for model in models]


def _check_columns(reader: Reader, test: UnitTest, known: Mapping[str, tuple[Column, ...]]) -> None:
    inputs = {given.input.replace('"', "'"): given.rows for given in test.given}
    parts = [(f"ref('{test.model}')", test.expect), *inputs.items()]
    for name, rows in parts:
        if name not in known:
            near = difflib.get_close_matches(name, list(known), 1)
            hint = f"Did you mean {near[0]}?" if near else f"Inputs: {', '.join(sorted(known))}."
            reader.problem("SR112", test.place, f"unit test {test.name}: unknown input {name}", hint)
            continue
        names = [c.name for c in known[name]]
        for column in sorted({c for row in rows for c in row} - set(names)):
            near = difflib.get_close_matches(column, names, 1)
            hint = f"{name} has: {', '.join(names)}." + (f" Did you mean `{near[0]}`?" if near else "")
            reader.problem("SR112", test.place, f"unit test {test.name}: {name} has no column `{column}`", hint)


def _seeds(root: Path, problems: list[Problem]) -> list[Seed]:
    found = []
    for file in sorted((root / "seeds").glob("*.csv")):
        yml = file.with_suffix(".yml")
        if not yml.is_file():
            message = "the seed has no contract beside it"
            hint = f"Write {_name(root, yml)} with `seeds:`, its columns and their types."
            problems.append(Problem("SR106", Place(_name(root, file)), message, hint))
            continue
        reader = Reader(_name(root, yml), _text(root, yml, problems), problems)
        known = ("name", "description", "grain", "columns")
        made = _contract(reader, "seeds", file.stem, known)
        if made is not None:
            rows = _rows(_name(root, file), _text(root, file, problems), made.columns, problems)
            found.append(
                Seed(file.stem, _name(root, file), reader.file, made.description, made.grain, made.columns, rows)
            )
    return found


def _rows(
    file: str, text: str, columns: tuple[Column, ...], problems: list[Problem]
) -> tuple[tuple[str | None, ...], ...]:
    reader = csv.reader(text.splitlines())
    lines = text.splitlines()
    header = next(reader, [])
    names = [c.name for c in columns]
    if header != names:
        hint = f"The contract says: {', '.join(names)}."
        excerpt = lines[0] if lines else ""
        problems.append(Problem("SR113", Place(file), f"the header is {', '.join(header)}", hint, excerpt))
        return ()
    rows: list[tuple[str | None, ...]] = []
    for fields in reader:
        line = reader.line_num
        if not fields:
            continue
        excerpt = lines[line - 1]
        if len(fields) != len(columns):
            message = f"{len(fields)} fields, the header has {len(columns)}"
            problems.append(Problem("SR113", Place(file, line), message, "Quote fields that hold commas.", excerpt))
            continue
        row = tuple(field or None for field in fields)
        for index, (field, column) in enumerate(zip(row, columns, strict=True)):
            wrong = _misfit(field, column)
            if wrong:
                at = 1 + sum(len(f) + 1 for f in fields[:index])
                problems.append(Problem("SR113", Place(file, line, at), wrong, f"See {column.place}.", excerpt))
        rows.append(row)
    return tuple(rows)


def _misfit(field: str | None, column: Column) -> str:
    if field is None:
        return "" if column.nullable else f"column `{column.name}` is empty, its contract says `nulls: false`"
    try:
        value = typed(field, column.type)
    except (ValueError, InvalidOperation):
        return f"`{field}` is not of type {column.type} (column `{column.name}`)"
    if isinstance(value, Decimal) and "(" in column.type:
        precision, scale = (int(p) for p in column.type[column.type.index("(") + 1 : -1].split(","))
        if value != round(value, scale) or abs(value) >= Decimal(10) ** (precision - scale):
            return f"`{field}` doesn't fit {column.type} (column `{column.name}`)"
    if column.type == "boolean" and field.lower() not in ("true", "false"):
        return f"`{field}` is neither true nor false (column `{column.name}`)"
    if column.type == "int" and not -(2**31) <= int(field) < 2**31:
        return f"`{field}` is too large for int (column `{column.name}`)"
    return ""


def _macros(root: Path, problems: list[Problem]) -> Iterator[Macro]:
    import re

    for file in sorted((root / "macros").rglob("*.sql")):
        text = _text(root, file, problems)
        names = re.findall(r"\{%-?\s*macro\s+(\w+)", text)
        if names != [file.stem]:
            message = f"the file holds {', '.join(names) or 'no macro'}; it is called {file.stem}"
            hint = "One macro a file, file name = macro name."
            problems.append(Problem("SR114", Place(_name(root, file)), message, hint))
            continue
        yield Macro(file.stem, _name(root, file), text)


def _suites(root: Path, models: list[Model], problems: list[Problem]) -> Iterator[Suite]:
    files = {model.file.removeprefix("models/").removesuffix(".sql"): model for model in models}
    for file in sorted((root / "expectations").rglob("*.yml")):
        key = file.relative_to(root / "expectations").with_suffix("").as_posix()
        reader = Reader(_name(root, file), _text(root, file, problems), problems)
        if key not in files:
            near = difflib.get_close_matches(key, list(files), 1)
            hint = f"Did you mean expectations/{near[0]}.yml?" if near else "expectations/ mirrors models/."
            message = f"there is no model models/{key}.sql for these expectations"
            reader.problem("SR115", Place(reader.file), message, hint)
        elif reader.root is not None:
            yield contract.suite(reader, files[key].name)
