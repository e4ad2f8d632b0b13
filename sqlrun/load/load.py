"""Read a project's folder into values, with every problem in it. Shell: the analyst's folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sqlrun.dashboards.nouns import Dashboard
from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.load import (
    built_in_macros,
    contract_files,
    dashboards,
    exposures,
    histories,
    seeds,
    settings,
    suites,
    unread_files,
)
from sqlrun.load.contract import MODEL_KEYS, SEED_KEYS, bad_name, configured, skeleton
from sqlrun.load.contract_files import Written, facts
from sqlrun.load.folder import Folder, decoded
from sqlrun.load.settings import Settings
from sqlrun.load.sources import sources
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.project import KAFKA, Exposure, Macro, Model, Project, Seed, Source, Suite
from sqlrun.runtime.disk_cache import Cache, digest
from sqlrun.runtime.text_lines import text_lines

# Names that a template has already; a macro of that name would hide it.
TEMPLATE_NAMES = (
    "ref", "source", "var", "config", "this", "is_incremental", "env_var", "range", "namespace", "adapter", "target",
    "return", "exceptions", "dbt", "dbt_utils", "dbt_date", "dbt_expectations",
)  # fmt: skip
# YAML files under models/ that aren't a model's contract.
OTHERS = ("_sources.yml", "_exposures.yml")


# Adds to a project what it reads from its folder; it gets the contracts with unit tests, by file.
Attach = Callable[[Folder, Project, Mapping[str, str]], Project]
# Adds the columns of open contracts, inferred from the queries.
Infer = Callable[[Folder, Project], Project]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A project as far as it could be read, and its problems.

    `contracts` has the hash of each model's and seed's contract, without descriptions and places.
    """

    project: Project
    problems: tuple[Problem, ...]
    contracts: Mapping[str, str]


def as_written(_: Folder, project: Project) -> Project:
    """Return a project as it is: models with open contracts lack columns. Enough for sources, seeds and settings."""
    return project


def read(root: Path, cache: Cache | None = None, attach: Sequence[Attach] = (), infer: Infer = as_written) -> Loaded:
    """Return the project with its problems; files whose content is in `cache` aren't parsed again.

    `infer` completes open contracts. `attach` adds what later stages read from the same folder: unit tests, and checks
    that are queries.

    Raises: ProjectError at once if there is no project (SR100) or its settings are not TOML (SR101).
    """
    folder = Folder(root.resolve(), [], cache or Cache(None))
    found = _settings(folder)
    project = Project(
        root=str(folder.root),
        name=found.name,
        profile=found.profile,
        vars=found.vars,
        models=(),
        seeds=tuple(_seeds(folder)),
        sources=tuple(_sources(folder)),
        macros=(macros := tuple(_macros(folder))),
        built_in=built_in_macros.beside(macros),
        suites=(),
        functions=found.functions,
        adapter_type=found.adapter_type,
        target=found.target,
        environment={name: os.environ.get(name) for name in found.env_vars},
    )
    models, contracts = _models(folder, found)
    project = infer(folder, replace(project, models=tuple(models)))
    if snapshots := tuple(_snapshots(folder, project)):
        # Models without a contract may read a snapshot.
        project = infer(folder, replace(project, models=(*project.models, *snapshots)))
    if found.require_descriptions:
        contract_files.require_descriptions(folder, project)
    _unique(folder, project)
    files = {model.file for model in project.models}
    disabled = tuple(model for model in models if model.file not in files)
    project = replace(project, suites=tuple(_suites(folder, project.models, disabled)))
    tested = {written.file: written.text for written in contracts if written.tested}
    for add in attach:
        project = add(folder, project, tested)
    project = replace(project, exposures=tuple(_exposures(folder, project)))
    unread_files.problems(folder)
    return Loaded(project, tuple(folder.problems), folder.facts)


def missing_sources(project: Project) -> tuple[Problem, ...]:
    """Return a problem (SR120) for each source whose folder is missing."""
    found = []
    for source in project.sources:
        if source.format != KAFKA and not (Path(project.root) / source.path).is_dir():
            hint = "Create the folder, or correct `path:`."
            message = f"the folder `{source.path}` of source `{source.group}.{source.name}` doesn't exist"
            lines = (Path(project.root) / source.place.file).read_text(encoding="utf-8-sig").split("\n")
            places = ((n, line.find(source.path) + 1) for n, line in enumerate(lines, 1) if n >= source.place.line)
            line, column = next((at for at in places if at[1]), (source.place.line, source.place.column))
            place = Place(source.place.file, line, column)
            found.append(Problem("SR120", place, message, hint, lines[line - 1]))
    return tuple(found)


def settings_of(root: Path) -> Settings:
    """Return the settings of pyproject.toml, without reading any other file.

    Raises: ProjectError where there are none (SR100) or they are no TOML (SR101).
    """
    return _settings(Folder(root.resolve(), [], Cache(None)))


def _settings(folder: Folder) -> Settings:
    file = folder.root / settings.FILE
    if not file.is_file():
        hint = "Run sqlrun in the project's folder, or name the folder: sqlrun --project-dir FOLDER ..."
        if (folder.root / "dbt_project.yml").is_file():
            hint = "This is a dbt project. Convert it: sqlrun import-dbt . --write ../FOLDER"
        raise ProjectError([Problem("SR100", Place(settings.FILE), "this folder has no `pyproject.toml`", hint)])
    text = folder.text(file)
    if text is None:
        raise ProjectError(folder.problems)
    models = folder.root / "models"
    above = [Path(place, name) for place, names, _ in os.walk(models) for name in names]
    folders = [place.relative_to(models).as_posix() for place in sorted(above)]
    return settings.read(text, folder.root.name, folders, folder.problems)


def _sources(folder: Folder) -> Iterator[Source]:
    for file in folder.files("models", "_sources.yml"):
        if file.name != "_sources.yml":
            continue
        text = folder.text(file)
        if text is not None:
            make = partial(_read, folder, file, text)
            yield from folder.cached("sources", [folder.name(file), text], tuple[Source, ...], make)


def _read(folder: Folder, file: Path, text: str) -> tuple[Source, ...]:
    reader = folder.yaml(file, text)
    return () if reader is None else sources(reader)


def _exposures(folder: Folder, project: Project) -> Iterator[Exposure]:
    names: set[str] = set()
    shown: list[Dashboard] = []
    for file in folder.files("models", "_exposures.yml"):
        text = folder.text(file) if file.name == "_exposures.yml" else None
        reader = folder.yaml(file, text) if text is not None else None
        for found in exposures.exposures(reader, project) if reader is not None else ():
            if found.name in names and reader is not None:
                reader.problem("SR111", found.place, f"duplicate exposure `{found.name}`", "Rename one.")
            names.add(found.name)
            if found.dashboard is not None and reader is not None:
                dashboards.one_of_each(reader, found.dashboard, found.place, shown)
                shown.append(found.dashboard)
            yield found


def _models(folder: Folder, found: Settings) -> tuple[list[Model], list[Written]]:
    """Return the models, and the files of their contracts."""
    files = [file for file in folder.files("models", ".yml") if file.name not in OTHERS]
    contracts = contract_files.read(folder, files, "models", MODEL_KEYS, ("unit_tests",))
    queries = folder.files("models", ".sql")
    written = contract_files.by_name(folder, contracts, [file.stem for file in queries], "model")
    models = []
    for file in queries:
        check_name(folder, file, "a model")
        models.append(_model(folder, file, found, written.get(file.stem)))
        _require_contract(folder, file, models[-1])
    return models, contracts


def _require_contract(folder: Folder, file: Path, model: Model) -> None:
    """Record what an enforced contract lacks: the contract itself, its columns or their types."""
    if not model.config.enforced or not model.is_open:
        return
    if not model.contract_file:
        indented = "\n".join(f"    {line}" for line in text_lines(skeleton(file.stem)))
        hint = f"Write {folder.name(file.with_suffix('.yml'))}:\n{indented}"
        folder.problem("SR106", file, "the model has no contract, which its settings enforce", hint)
        return
    untyped = next((column for column in model.columns if not column.type), None)
    what = (
        f"column `{untyped.name}` of `{model.name}` lacks `data_type`" if untyped else f"`{model.name}` has no columns"
    )
    message = f"{what}, but its contract is enforced"
    place = untyped.place if untyped else model.place
    hint = "Add `data_type:`." if untyped else "List all columns with their types."
    folder.problems.append(Problem("SR104", place, message, hint))


def _model(folder: Folder, file: Path, found: Settings, written: Written | None) -> Model:
    """Return a model; the columns of one without a contract are inferred later."""
    name, sql = folder.name(file), folder.text(file)
    if sql is None:  # reported already; the rest of the model is still checked
        sql = decoded(file)
    if written is None:
        config = configured(*found.layers(name))
        return replace(Model.of_text(file.stem, name, sql), config=config, is_open=True, place=Place(name))
    made = contract_files.contract_of(written, file.stem)
    config = configured(*found.layers(name), made.config)
    known = {column.name for column in made.columns}
    for column in config.partition_by if "partition_by" not in made.config and not made.is_open else ():
        if column not in known:
            hint = f"Columns: {', '.join(c.name for c in made.columns)}.{did_you_mean(column, known)}"
            message = f"unknown column `{column}` in `partition_by` of `{name}`"
            folder.problems.append(found.problem_at(name, "partition_by", message, hint))
    return Model(
        name=file.stem,
        file=name,
        sql=sql,
        contract_file=written.file,
        description=made.description,
        grain=made.grain,
        repeats=made.repeats,
        columns=made.columns,
        config=config,
        unit_tests=(),
        event_time=made.event_time,
        freshness=made.freshness,
        said=made.said,
        is_open=made.is_open,
        place=made.place,
    )


def check_name(folder: Folder, file: Path, what: str) -> None:
    """Record a problem (SR116) for a file whose name is invalid for its content."""
    if bad_name(file.stem):
        folder.problem("SR116", file, f"invalid name `{file.stem}` for {what}", bad_name(file.stem))


def _unique(folder: Folder, project: Project) -> None:
    """Record names that are used twice; Spark and many file systems ignore case."""
    tables = [(model.name, Place(model.file)) for model in project.models]
    tables += [(seed.name, Place(seed.file)) for seed in project.seeds]
    tables += [(source.table, source.place) for source in project.sources]
    for names in (tables, [(macro.name, Place(macro.file)) for macro in project.macros]):
        first: dict[str, Place] = {}
        for name, place in names:
            other = first.setdefault(name.lower(), place)
            if other is not place:
                hint = "Rename one. Models, seeds and sources (group__name) of all folders must have different names."
                message = f"duplicate name `{name}`, also in {other}"
                folder.problems.append(Problem("SR111", place, message, hint))


def _snapshots(folder: Folder, project: Project) -> Iterator[Model]:
    nouns: tuple[Model | Seed, ...] = (*project.models, *project.seeds)
    tables = {f"ref('{noun.name}')": noun.columns for noun in nouns if noun.columns}
    tables |= {f"source('{s.group}', '{s.name}')": s.columns for s in project.sources if not s.lands}
    for file in folder.files("snapshots", ".yml"):
        text = folder.text(file)
        reader = folder.yaml(file, text) if text is not None else None
        for model in histories.snapshots(reader, tables) if reader is not None else ():
            folder.facts[model.name] = digest(facts(model))
            yield model


def _seeds(folder: Folder) -> Iterator[Seed]:
    files = folder.files("seeds", ".csv")
    contracts = contract_files.read(folder, folder.files("seeds", ".yml"), "seeds", SEED_KEYS)
    found = contract_files.by_name(folder, contracts, [file.stem for file in files], "seed")
    for file in files:
        check_name(folder, file, "a seed")
        name, written = folder.name(file), found.get(file.stem)
        if written is None:
            if not bad_name(file.stem):
                hint = f"Write {folder.name(file.with_suffix('.yml'))} with `seeds:`, the columns and their types."
                folder.problem("SR106", file, "the seed has no contract", hint)
            yield Seed(file.stem, name, "", "", (), (), ())
            continue
        made, lines = contract_files.contract_of(written, file.stem), text_lines(written.text)
        for problem in seeds.unknown_types(made.columns):
            folder.problems.append(replace(problem, excerpt=lines[problem.place.line - 1]))
        text = folder.text(file)
        rows = () if text is None else seeds.rows(name, text, made.columns, made.grain, folder.problems)
        yield Seed(file.stem, name, written.file, made.description, made.grain, made.columns, rows, made.meta)


def _macros(folder: Folder) -> Iterator[Macro]:
    for file in folder.files("macros", ".sql"):
        text = folder.text(file)
        if text is None:
            continue
        # A macro's comment may show a macro. Comments are blanked, not removed, so that line numbers stay.
        code = re.sub(r"\{#.*?(?:#\}|\Z)", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
        names = list(re.finditer(r"\{%[-+]?\s*macro\s+(\w+)", code))
        wrong = next((found for found in names if found[1] != file.stem), names[1] if len(names) > 1 else None)
        if file.stem in TEMPLATE_NAMES:
            folder.problem("SR114", file, f"the name `{file.stem}` is reserved for sqlrun", "Choose another name.")
        elif not names:
            hint = f"Write {{% macro {file.stem}() %}}...{{% endmacro %}}."
            folder.problem("SR114", file, "the file has no macro", hint)
        elif wrong is not None:
            line = code.count("\n", 0, wrong.start(1))
            column = wrong.start(1) - code.rfind("\n", 0, wrong.start(1))
            message = f"the file `{file.name}` contains the macro `{wrong[1]}`"
            hint = "Write one macro in each file, and name the file after the macro."
            place = Place(folder.name(file), line + 1, column)
            folder.problems.append(Problem("SR114", place, message, hint, text.split("\n")[line]))
        else:
            yield Macro(file.stem, folder.name(file), text)


def _suites(folder: Folder, models: tuple[Model, ...], disabled: tuple[Model, ...]) -> Iterator[Suite]:
    files = {model.file.removeprefix("models/").removesuffix(".sql"): model for model in models}
    for file in folder.files("expectations", ".yml"):
        key = file.relative_to(folder.root / "expectations").with_suffix("").as_posix()
        if any(model.file == f"models/{key}.sql" for model in disabled):
            continue
        if key not in files:
            moved = [name for name in files if name.rpartition("/")[2] == file.stem]
            near = f" Move it to expectations/{moved[0]}.yml." if moved else did_you_mean(key, files)
            message = f"no model matches these expectations: models/{key}.sql doesn't exist"
            folder.problem("SR115", file, message, f"The paths in expectations/ must match those in models/.{near}")
            continue
        text = folder.text(file)
        if text is None:
            continue
        model = files[key].name
        found = folder.cached(
            "suite", [folder.name(file), text, model], Suite | None, partial(_suite, folder, file, text, model)
        )
        if found is not None:
            yield found


def _suite(folder: Folder, file: Path, text: str, model: str) -> Suite | None:
    reader = folder.yaml(file, text)
    return None if reader is None else suites.suite(reader, model)
