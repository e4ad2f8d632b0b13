"""The project folder to nouns, with every problem in it. Shell: the analyst's folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sqlrun import declared_tests, seed_fields, settings, suites
from sqlrun.contract import (
    MODEL_KEYS,
    SEED_KEYS,
    Contract,
    bad_name,
    configured,
    contract,
    skeleton,
    sources,
)
from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.model import Macro, Model, Project, Seed, Suite
from sqlrun.settings import Settings
from sqlrun.yaml_values import Reader, did_you_mean

# What a template sees under its own name; a macro of that name would hide it.
TEMPLATE_NAMES = ("ref", "source", "var", "config", "this", "is_incremental", "env_var", "range", "namespace")
SUFFIXES = {"models": (".sql", ".yml"), "macros": (".sql",), "seeds": (".csv", ".yml"), "expectations": (".yml",)}
# More than anybody writes by hand, and little enough to be read in seconds.
MOST_BYTES = {".sql": 1_000_000, ".yml": 1_000_000, ".toml": 1_000_000, ".csv": 64_000_000}
LOOKALIKES = (".sql", ".yml", ".yaml", ".csv", ".j2", ".jinja")  # what is none of these needs no word


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

    Raises: ProjectError at once where there is no project at all (SR100) or its settings are no TOML (SR101).
    """
    folder = _Folder(root.resolve(), [])
    found = _settings(folder)
    nouns = Project(
        root=str(folder.root),
        name=found.name,
        profile=found.profile,
        vars=found.vars,
        models=(),
        seeds=tuple(_seeds(folder)),
        sources=tuple(s for reader in _yaml_files(folder, "_sources.yml") for s in sources(reader)),
        macros=tuple(_macros(folder)),
        suites=(),
        functions=found.functions,
    )
    models, readers = _models(folder, found)
    nouns = replace(nouns, models=tuple(models))
    _unique(folder, nouns)
    nouns = replace(nouns, models=tuple(_with_tests(nouns, readers)), suites=tuple(_suites(folder, nouns.models)))
    _unread(folder)
    return Loaded(nouns, tuple(folder.problems))


def missing_sources(nouns: Project) -> tuple[Problem, ...]:
    """Find the sources whose folder is not there (SR120)."""
    found = []
    for source in nouns.sources:
        if not (Path(nouns.root) / source.path).is_dir():
            hint = "Create the folder, correct `path:`, or write a sample: sqlrun simulate"
            message = f"source {source.group}.{source.name}: the folder {source.path} does not exist"
            lines = (Path(nouns.root) / source.place.file).read_text(encoding="utf-8-sig").split("\n")
            places = ((n, line.find(source.path) + 1) for n, line in enumerate(lines, 1) if n >= source.place.line)
            line, column = next((at for at in places if at[1]), (source.place.line, source.place.column))
            place = Place(source.place.file, line, column)
            found.append(Problem("SR120", place, message, hint, lines[line - 1]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Folder:
    """The project's folder, and the problems found in it so far."""

    root: Path
    problems: list[Problem]

    def name(self, file: Path) -> str:
        """Name a file as analysts do."""
        return file.relative_to(self.root).as_posix()

    def files(self, room: str, pattern: str) -> list[Path]:
        """List a room's files by name, but those of tools that hide behind a dot and links that lead out."""
        found = sorted((self.root / room).rglob(pattern))
        linked = (self.root / room).is_symlink()
        return [
            f
            for f in found
            if f.is_file()
            and not any(p.startswith(".") for p in f.relative_to(self.root).parts)
            and not ((linked or f.is_symlink()) and self._leads_out(f))
        ]

    def _leads_out(self, file: Path) -> bool:
        """Tell whether a link leads out of the project, and note it: a mistake in it would print a foreign line."""
        if file.resolve().is_relative_to(self.root):
            return False
        if not any(p.code == "SR118" and p.place.file == self.name(file) for p in self.problems):
            hint = "Copy the file here, or link to one of the project; sources may lie anywhere."
            self.problem("SR118", file, "this link leads out of the project", hint)
        return True

    def text(self, file: Path) -> str | None:
        """Read a text file; a byte order mark is taken off, line ends are one character."""
        size, most = file.stat().st_size, MOST_BYTES[file.suffix]
        if size > most:
            message = f"the file has {size:,} bytes; sqlrun reads no more than {most:,} of a {file.suffix} file"
            self.problem("SR101", file, message, "Part it, or land its rows from a source.")
            return None
        data = file.read_bytes()
        try:
            return _lines(data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            column = len(data[start : error.start].decode("utf-8", "replace")) + 1
            excerpt = data[start:].partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
            place = Place(self.name(file), data.count(b"\n", 0, error.start) + 1, column)
            self.problems.append(Problem("SR101", place, "this is not UTF-8 text", "Save the file as UTF-8.", excerpt))
            return None

    def yaml(self, file: Path) -> Reader | None:
        """Read a YAML file; None where it is none, which is noted."""
        text = self.text(file)
        if text is None:
            return None
        reader = Reader(self.name(file), text, self.problems)
        if reader.root is None and not reader.broken:
            reader.problem("SR104", Place(reader.file), "the file is empty", "Fill it, or delete it.")
        return None if reader.root is None else reader

    def problem(self, code: str, file: Path, message: str, hint: str) -> None:
        """Note a problem of a file as a whole."""
        self.problems.append(Problem(code, Place(self.name(file)), message, hint))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _settings(folder: _Folder) -> Settings:
    file = folder.root / settings.FILE
    if not file.is_file():
        hint = "Run sqlrun in the project's folder, or name it: sqlrun --project-dir FOLDER ..."
        raise ProjectError([Problem("SR100", Place(settings.FILE), "there is no pyproject.toml here", hint)])
    text = folder.text(file)
    if text is None:
        raise ProjectError(folder.problems)
    models = folder.root / "models"
    folders = [f.relative_to(models).as_posix() for f in sorted(models.rglob("*")) if f.is_dir()]
    return settings.read(text, folder.root.name, folders, folder.problems)


def _yaml_files(folder: _Folder, pattern: str) -> Iterator[Reader]:
    for file in folder.files("models", pattern):
        reader = folder.yaml(file)
        if reader is not None:
            yield reader


def _models(folder: _Folder, found: Settings) -> tuple[list[Model], list[Reader]]:
    models: list[Model] = []
    readers: list[Reader] = []
    for file in folder.files("models", "*.yml"):
        if file.name != "_sources.yml" and not file.with_suffix(".sql").is_file():
            hint = "Write the query beside it, or remove the file; sources stand in _sources.yml."
            folder.problem("SR105", file, f"there is no {file.stem}.sql beside it", hint)
    for file in folder.files("models", "*.sql"):
        _check_name(folder, file, "a model")
        reader, made = None, None
        if file.with_suffix(".yml").is_file():
            reader = folder.yaml(file.with_suffix(".yml"))
            made = _entry(reader, "models", file.stem, MODEL_KEYS, ("unit_tests",)) if reader else None
        elif not bad_name(file.stem):
            indented = "\n".join(f"    {line}" for line in skeleton(file.stem).splitlines())
            hint = f"Write {folder.name(file.with_suffix('.yml'))}:\n{indented}"
            folder.problem("SR106", file, "the model has no contract beside it", hint)
        model = _model(folder, file, found, reader, made)
        models.append(model)
        if reader is not None and made is not None:
            readers.append(reader)
    return models, readers


def _model(folder: _Folder, file: Path, found: Settings, reader: Reader | None, made: Contract | None) -> Model:
    """Put a model together; without a contract it is kept bare, so that refs to it are not called unknown."""
    name, sql = folder.name(file), folder.text(file)
    if sql is None:  # told already; the rest of it is still looked at
        sql = _lines(file.read_bytes().decode("utf-8", "replace"))
    if reader is None or made is None:
        return Model(file.stem, name, sql, "", "", (), False, (), configured(*found.layers(name)), ())
    config = configured(*found.layers(name), made.config)
    known = {column.name for column in made.columns}
    for column in config.partition_by if "partition_by" not in made.config else ():
        if column not in known:
            hint = f"Columns: {', '.join(c.name for c in made.columns)}.{did_you_mean(column, known)}"
            message = f"`{column}` in `partition_by` is not a column of {name}"
            folder.problems.append(found.problem_at(name, "partition_by", message, hint))
    return Model(
        name=file.stem,
        file=name,
        sql=sql,
        contract_file=reader.file,
        description=made.description,
        grain=made.grain,
        repeats=made.repeats,
        columns=made.columns,
        config=config,
        unit_tests=(),
    )


def _entry(reader: Reader, key: str, stem: str, known: Iterable[str], also: tuple[str, ...] = ()) -> Contract | None:
    """Read the one entry that a model's or a seed's YAML has."""
    top = reader.mapping(reader.root, Place(reader.file), "the file", ("version", key, *also), (key,))
    entries = reader.items(top, key, "the file")
    if not entries:
        if isinstance(top.get(key), list):
            reader.problem("SR104", reader.place(top, key), f"`{key}` is empty", f"Write: - name: {stem}")
        return None
    if len(entries) > 1:
        reader.problem("SR107", entries[1][1], "a file holds one contract", "Give each its own file.")
    node, place = entries[0]
    node = reader.mapping(node, place, f"an entry of `{key}`", known, ("name", "description", "columns"))
    if not node:
        return None
    made = contract(reader, node)
    if made.name and made.name != stem:
        message = f"the contract is for `{made.name}`, the file is called {stem}"
        hint = f"Write `name: {stem}`, or rename the files."
        reader.problem("SR107", reader.value_place(node, "name"), message, hint)
    if node.get("columns") == []:
        reader.problem("SR104", reader.place(node, "columns"), f"`{made.name}` has no columns", "Name them all.")
    return made


def _check_name(folder: _Folder, file: Path, what: str) -> None:
    if bad_name(file.stem):
        folder.problem("SR116", file, f"`{file.stem}` can't name {what}", bad_name(file.stem))


def _unique(folder: _Folder, nouns: Project) -> None:
    """Note names used twice; Spark and many disks don't tell upper from lower case."""
    tables = [(model.name, Place(model.file)) for model in nouns.models]
    tables += [(seed.name, Place(seed.file)) for seed in nouns.seeds]
    tables += [(source.table, source.place) for source in nouns.sources]
    for names in (tables, [(macro.name, Place(macro.file)) for macro in nouns.macros]):
        first: dict[str, Place] = {}
        for name, place in names:
            other = first.setdefault(name.lower(), place)
            if other is not place:
                hint = (
                    "Names are unique over all folders; models, seeds and sources (group__name) share them. Rename one."
                )
                message = f"`{name}` is also the name of {other}"
                folder.problems.append(Problem("SR111", place, message, hint))


def _with_tests(nouns: Project, readers: list[Reader]) -> Iterator[Model]:
    known = {f"ref('{model.name}')": tuple(c.name for c in model.columns) for model in nouns.models}
    known.update({f"ref('{seed.name}')": tuple(c.name for c in seed.columns) for seed in nouns.seeds})
    known.update({f"source('{s.group}', '{s.name}')": tuple(c.name for c in s.columns) for s in nouns.sources})
    names = {model.name for model in nouns.models}
    tests = [test for reader in readers for test in declared_tests.unit_tests(reader, known, names)]
    for model in nouns.models:
        yield replace(model, unit_tests=tuple(test for test in tests if test.model == model.name))


def _seeds(folder: _Folder) -> Iterator[Seed]:
    for file in folder.files("seeds", "*.yml"):
        if not file.with_suffix(".csv").is_file():
            hint = "Write the rows beside it, or remove the file."
            folder.problem("SR105", file, f"there is no {file.stem}.csv beside it", hint)
    for file in folder.files("seeds", "*.csv"):
        _check_name(folder, file, "a seed")
        name, made, reader = folder.name(file), None, None
        if file.with_suffix(".yml").is_file():
            reader = folder.yaml(file.with_suffix(".yml"))
            made = _entry(reader, "seeds", file.stem, SEED_KEYS) if reader else None
        elif not bad_name(file.stem):
            message = "the seed has no contract beside it"
            hint = f"Write {folder.name(file.with_suffix('.yml'))} with `seeds:`, its columns and their types."
            folder.problem("SR106", file, message, hint)
        if reader is None or made is None:
            yield Seed(file.stem, name, "", "", (), (), ())
            continue
        for problem in seed_fields.unknown_types(made.columns):
            reader.problem(problem.code, problem.place, problem.message, problem.hint)
        text = folder.text(file)
        rows = () if text is None else seed_fields.rows(name, text, made.columns, made.grain, folder.problems)
        yield Seed(file.stem, name, reader.file, made.description, made.grain, made.columns, rows)


def _macros(folder: _Folder) -> Iterator[Macro]:
    for file in folder.files("macros", "*.sql"):
        text = folder.text(file)
        if text is None:
            continue
        # A macro's doc comment may show one; a comment stays as long as it was, so that lines count.
        code = re.sub(r"\{#.*?(?:#\}|\Z)", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
        names = list(re.finditer(r"\{%[-+]?\s*macro\s+(\w+)", code))
        wrong = next((found for found in names if found[1] != file.stem), names[1] if len(names) > 1 else None)
        if file.stem in TEMPLATE_NAMES:
            folder.problem("SR114", file, f"`{file.stem}` is sqlrun's own", "Choose another name.")
        elif not names:
            hint = f"Write {{% macro {file.stem}() %}}...{{% endmacro %}}."
            folder.problem("SR114", file, "the file holds no macro", hint)
        elif wrong is not None:
            line = code.count("\n", 0, wrong.start(1))
            column = wrong.start(1) - code.rfind("\n", 0, wrong.start(1))
            message = f"the file {file.name} holds the macro `{wrong[1]}`"
            hint = "One macro a file, and the file is called like the macro."
            place = Place(folder.name(file), line + 1, column)
            folder.problems.append(Problem("SR114", place, message, hint, text.split("\n")[line]))
        else:
            yield Macro(file.stem, folder.name(file), text)


def _suites(folder: _Folder, models: tuple[Model, ...]) -> Iterator[Suite]:
    files = {model.file.removeprefix("models/").removesuffix(".sql"): model for model in models}
    for file in folder.files("expectations", "*.yml"):
        key = file.relative_to(folder.root / "expectations").with_suffix("").as_posix()
        if key not in files:
            moved = [name for name in files if name.rpartition("/")[2] == file.stem]
            near = f" Move it to expectations/{moved[0]}.yml." if moved else did_you_mean(key, files)
            message = f"there is no model models/{key}.sql for these expectations"
            folder.problem("SR115", file, message, f"expectations/ mirrors models/.{near}")
            continue
        reader = folder.yaml(file)
        if reader is not None:
            yield suites.suite(reader, files[key].name)


def _unread(folder: _Folder) -> None:
    """Note files that look as if they counted but don't: silence would hide a model or a check."""
    for room, suffixes in SUFFIXES.items():
        for file in folder.files(room, "*"):
            if file.suffix.lower() in LOOKALIKES and file.suffix not in suffixes:
                hint = f"{room}/ holds {' and '.join(suffixes)} files; rename it, or move it elsewhere."
                folder.problem("SR117", file, "sqlrun does not read this file", hint)
