"""Read the folders of a dbt project, and of the local packages that it names. Shell: the dbt project."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlrun.errors import UsageError
from sqlrun.load import built_in_macros
from sqlrun.load.contract import bad_name
from sqlrun.load.load import TEMPLATE_NAMES
from sqlrun.packages import declared, deps
from sqlrun.packages.declared import ALONG, INSTALLED, Git, Hub, Local
from sqlrun.scaffold import dbt_contracts, dbt_files, dbt_jinja, dbt_models, dbt_seeds, dbt_settings, dbt_tests
from sqlrun.scaffold.dbt_contracts import Terms
from sqlrun.scaffold.dbt_settings import SETTINGS
from sqlrun.scaffold.imported import Import

FOLDERS = {
    "models": "model-paths", "seeds": "seed-paths", "macros": "macro-paths", "snapshots": "snapshot-paths",
    "tests": "test-paths", "analyses": "analysis-paths",
}  # fmt: skip
# Macros that dbt itself calls.
OF_DBT = ("generate_schema_name", "generate_alias_name", "generate_database_name", "ref_name", "source_name")
GENERIC = re.compile(r"\{%-?\s*(data_)?test\s")
_COPY = "Copy the macros and models that you use into the project, and import it again"


def read(root: Path, settings: Mapping[str, Any], made: Import) -> None:
    """Read a project: its packages first, whose macros and models it uses."""
    for macro in built_in_macros.beside(()):
        if macro.package:
            made.library.along.setdefault(macro.package, {})[macro.name] = macro.text
    _packages(root, made, (root,))
    blocks = dict[str, str]()
    rooms = [Rooms(root, "", settings)]
    rooms += [Rooms(folder, name, found) for name, folder, found in made.local]
    for room in rooms:
        _macros(room, made)
        for file in dbt_files.below(room["models"], ".md"):
            blocks |= dbt_contracts.docs(dbt_files.text(file, room.root))
        for base in room["models"]:
            for file in dbt_files.below([base], ".sql"):
                path = file.relative_to(base).as_posix()
                made.queries["/".join(filter(None, (room.name, path)))] = dbt_files.text(file, room.root)
    written = [dbt_jinja.rewritten(text, (), lambda *_: None) for text in made.queries.values()]
    terms = Terms(blocks, frozenset(made.library.own), dbt_models.below(dict(zip(made.queries, written, strict=True))))
    for room in rooms:
        _contracts(room, terms, made)
    for room in rooms:
        _seeds(room, dbt_settings.seed_types(room.settings, room.name or made.name, made.notes), made)
        _others(room, made)


class Rooms(dict[str, list[Path]]):
    """The folders of a project by what they have; `name` is that of a package, "" for the project."""

    def __init__(self, root: Path, name: str, settings: Mapping[str, Any]) -> None:
        super().__init__({room: _paths(root, settings, key, room) for room, key in FOLDERS.items()})
        self.root, self.name, self.settings = root, name, settings


def _paths(root: Path, settings: Mapping[str, Any], key: str, default: str) -> list[Path]:
    listed = settings.get(key) or [default]
    found = [(root / str(path)).resolve() for path in listed]
    for path in found:
        if not path.is_relative_to(root):
            raise UsageError(f"`{key}` of {SETTINGS} leads out of the project: {path}")
    return [path for path in found if path.is_dir()]


def _packages(root: Path, made: Import, above: tuple[Path, ...]) -> None:
    """Add the local and the fetched packages of a project, each with its own ones; note all others."""
    shown = "" if root == above[0] else f"{root.name}/"
    for entry in deps.entries(root, shown):
        match entry:
            case Local():
                _local(root, entry.path, made, above)
            case Git() | Hub() if entry.short in ALONG:
                file = entry.where.partition(":")[0]
                made.notes.append(f"{file}: {entry.short}: its macros and tests come with sqlrun")
            case Git():
                _local(above[0], f"{INSTALLED}/{_fetched(above[0], entry, is_own=len(above) == 1)}", made, above)
            case Hub():
                _of_the_hub(entry, made, above)


def _fetched(root: Path, package: Git, *, is_own: bool) -> str:
    """Return the name of a package that was fetched. Raises: UsageError if it wasn't, or at another revision."""
    name = deps.folder_of(root, package, is_own=is_own)
    if not name:
        raise UsageError(
            f"{package.where}: {package.url} isn't in {INSTALLED}/ at {package.revision}. "
            f"Run `sqlrun deps {shlex.quote(str(root))}`, then import again"
        )
    return name


def _of_the_hub(entry: Hub, made: Import, above: tuple[Path, ...]) -> None:
    if (above[0] / INSTALLED / entry.short / SETTINGS).is_file():
        _local(above[0], f"{INSTALLED}/{entry.short}", made, above)
    elif not any(name == entry.short for name, _, _ in made.local):
        problem = declared.not_fetched(entry)
        made.notes.append(f"{entry.where}: {problem.message}. {problem.hint}")


def _local(root: Path, where: str, made: Import, above: tuple[Path, ...]) -> None:
    folder = (root / where).resolve()
    # A package may be beside the project, as in a repository with several; not anywhere on the machine.
    if not folder.is_relative_to(above[0].parent):
        raise UsageError(f"the package {where} is neither in the project nor beside it. {_COPY}")
    if not (folder / SETTINGS).is_file():
        raise UsageError(f"the package {where} has no {SETTINGS}")
    if folder in above or any(folder == known for _, known, _ in made.local):
        return
    settings = dbt_files.yaml(folder / SETTINGS, folder, dbt_files.SETTINGS)
    name = str(settings.get("name") or folder.name)
    if bad_name(name):
        raise UsageError(f"the package {where} has the invalid name {name!r}. {bad_name(name)}")
    made.local.append((name, folder, settings))
    made.packages.append(name)
    _packages(folder, made, (*above, folder))


def _macros(room: Rooms, made: Import) -> None:
    for base in (*room["macros"], *room["tests"]):
        for file in dbt_files.below([base], ".sql"):
            text = dbt_files.text(file, room.root)
            where = file.relative_to(room.root).as_posix()
            for name, macro in dbt_jinja.generic_tests(text):
                if made.macros.setdefault(f"test_{name}", macro) is macro:
                    made.library.own[name] = macro
            variants = []
            for name, macro in dbt_jinja.macros(text) if base in room["macros"] else ():
                variant = dbt_jinja.VARIANT.fullmatch(name)
                if name in OF_DBT:
                    made.notes.append(f"{where}: `{name}` was left out: a table has the name of its file")
                elif name in TEMPLATE_NAMES:
                    made.notes.append(f"{where}: `{name}` was left out: sqlrun has its own")
                elif variant is not None and variant[1] not in dbt_jinja.OURS:
                    variants.append(name)
                elif made.macros.setdefault(name, macro) != macro:
                    made.notes.append(f"{where}: `{name}` was left out: another macro has this name")
            if variants:
                made.notes.append(f"{where}: other adapters' macros were left out: {', '.join(variants)}")
            for word in ("materialization", "snapshot"):
                if re.search(rf"\{{%-?\s*{word}\s", text):
                    made.notes.append(f"{where}: `{{% {word} %}}` has no equal")


def _contracts(room: Rooms, terms: Terms, made: Import) -> None:
    for base in (*room["models"], *room["seeds"]):
        for file in dbt_files.below([base], ".yml", ".yaml"):
            found = dbt_contracts.converted(
                file.relative_to(room.root).as_posix(), dbt_files.yaml(file, room.root, dbt_files.PROPERTIES), terms
            )
            path = file.relative_to(base).with_suffix(".yml").as_posix()
            name = "/".join(filter(None, (room.name, path if base in room["models"] else f"seeds/{path}")))
            made.converted[name] = found
            made.notes += found.notes


def _seeds(room: Rooms, types: Mapping[str, Mapping[str, Any]], made: Import) -> None:
    described = [node for found in made.converted.values() for node in found.seeds]
    for base in room["seeds"]:
        dbt_seeds.read(base, room.root, made, described, types)


def _others(room: Rooms, made: Import) -> None:
    for file in dbt_files.below(room["models"], ".py"):
        made.notes.append(f"{file.relative_to(room.root)}: Python models have no equal")
    for base in room["snapshots"]:
        for file in dbt_files.below([base], ".yml", ".yaml"):
            name = file.relative_to(base).with_suffix(".yml").as_posix()
            made.files[f"snapshots/{name}"] = dbt_files.text(file, room.root)
        for file in dbt_files.below([base], ".sql"):
            made.notes.append(f"{file.relative_to(room.root)}: declare the snapshot in YAML, as dbt does since 1.9")
    for base in room["analyses"]:
        for file in dbt_files.below([base], ".sql"):
            path = file.relative_to(base).as_posix()
            made.queries[f"analyses/{path}"] = dbt_files.text(file, room.root).rstrip().rstrip(";") + "\n"
            made.notes.append(f"{file.relative_to(room.root)}: a view, which is compiled and never stored")
    for base in room["tests"]:
        for file in dbt_files.below([base], ".sql", ".csv"):
            if "fixtures" in file.relative_to(base).parts:
                made.files[f"tests/fixtures/{file.name}"] = dbt_files.text(file, room.root)
            elif file.suffix == ".sql":
                _singular(file, base, room, made)


def _singular(file: Path, base: Path, room: Rooms, made: Import) -> None:
    """Add a singular test."""
    text, where = dbt_files.text(file, room.root), file.relative_to(room.root).as_posix()
    if GENERIC.search(text):
        return
    text = dbt_jinja.rewritten(text, made.packages, made.source)
    settings: dict[str, Any] = {}
    call = dbt_jinja.config_call(text)
    if call is not None:
        text = dbt_jinja.with_config(text, call, ())
        for key, value in call.arguments:
            settings[key] = dbt_jinja.value_of(value)
            if key not in dbt_tests.SETTINGS:
                made.notes.append(f"{where}: `{key}` of config() was left out")
    name = dbt_tests.identifier(file.stem)
    reads = frozenset(found for _, found in dbt_jinja.READ.findall(text))
    if not reads or bad_name(name):
        made.notes.append(f"{where}: the test reads no model or seed, and was left out")
        return
    query = text.strip().rstrip(";")
    made.singular.append(dbt_tests.Query(name, query, reads, settings, "", where))
