"""`sqlrun import-dbt`: a dbt project as a project of sqlrun, and a report of what changed. Shell: both folders."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlrun import pipeline
from sqlrun.errors import ProjectError, UsageError
from sqlrun.load.contract import bad_name
from sqlrun.runtime import atomic_files
from sqlrun.runtime.text_table import counted
from sqlrun.scaffold import dbt_contracts, dbt_files, samples, tables, texts
from sqlrun.scaffold.dbt_contracts import Converted

SETTINGS = "dbt_project.yml"
FOLDERS = {"models": "model-paths", "seeds": "seed-paths", "macros": "macro-paths", "snapshots": "snapshot-paths"}
TESTS = "test-paths"
READ = re.compile(r"""\bref\(\s*(['"])(\w+)\1\s*\)""")
SOURCE = re.compile(r"""source\(\s*(['"])(\w+)\1\s*,\s*(['"])(\w+)\3\s*\)""")
MACRO = re.compile(r"\{%-?\s*macro\s+(\w+).*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)
STORED = re.compile(r"""(materialized\s*=\s*)(['"])(\w+)\2""")
BARE = re.compile("[A-Za-z0-9_-]+")
# Macros that dbt itself calls.
OF_DBT = ("generate_schema_name", "generate_alias_name", "generate_database_name")
TYPES = {"varchar": "string", "text": "string", "integer": "int", "numeric": "decimal(18,2)", "float": "double"}


@dataclass
class Import:
    """What is written, by path, and what is said."""

    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # Texts of the queries by their paths below models/.
    queries: dict[str, str] = field(default_factory=dict)
    converted: dict[str, Converted] = field(default_factory=dict)


def import_dbt(folder: Path, out: Path | None) -> tuple[list[str], bool]:
    """Convert a dbt project, and write it to `out`; return the lines to print, and whether the result is valid.

    Raises: UsageError if there is no dbt project, or `out` has files.
    """
    root = folder.resolve()
    if not (root / SETTINGS).is_file():
        raise UsageError(f"{folder} has no {SETTINGS}")
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} isn't empty. Nothing was written")
    settings = dbt_files.yaml(root / SETTINGS, root, dbt_files.SETTINGS)
    made = Import()
    _read(root, settings, made)
    _stored(settings, made)
    for name, text in made.queries.items():
        made.files[f"models/{name}"] = text
    for name, found in made.converted.items():
        entries = {"models": found.models, **({"unit_tests": found.unit_tests} if found.unit_tests else {})}
        if found.models or found.unit_tests:
            made.files[f"models/{name}"] = _dumped(entries if found.models else {"unit_tests": found.unit_tests})
    made.files |= _settings(settings, made)
    lines = [*made.notes, f"{counted(len(made.queries), 'model')}, {counted(len(made.files), 'file')}."]
    if out is None:
        return [*lines, "Nothing was written. Write the project with --write FOLDER."], True
    for name, text in made.files.items():
        file = out / name
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.put(file, text.encode(), synced=False)
    return _checked(out, lines)


def _checked(out: Path, lines: list[str]) -> tuple[list[str], bool]:
    """Return the lines with the problems that the written project still has."""
    try:
        pipeline.prepare(out.resolve())
    except ProjectError as error:
        text = str(error)
        return [*lines, f"Wrote {out}. Edit by hand what is left:", "", *text.split("\n")], False
    return [*lines, f"Wrote {out}. Next: cd {out} && sqlrun build"], True


def _read(root: Path, settings: Mapping[str, Any], made: Import) -> None:
    rooms = {room: _paths(root, settings, key, room) for room, key in FOLDERS.items()}
    blocks: dict[str, str] = {}
    for file in _all(rooms["models"], ".md"):
        blocks |= dbt_contracts.docs(dbt_files.text(file, root))
    for base in rooms["models"]:
        for file in _all([base], ".sql"):
            made.queries[file.relative_to(base).as_posix()] = dbt_files.text(file, root)
        for file in _all([base], ".yml", ".yaml"):
            name = file.relative_to(base).with_suffix(".yml").as_posix()
            found = dbt_contracts.converted(
                file.relative_to(root).as_posix(), dbt_files.yaml(file, root, dbt_files.PROPERTIES), blocks
            )
            made.converted[name] = found
            made.notes += found.notes
        for file in _all([base], ".py"):
            made.notes.append(f"{file.relative_to(root)}: Python models have no equal")
    _seeds(root, rooms["seeds"], made)
    for base in rooms["macros"]:
        for file in _all([base], ".sql"):
            _macros(file, root, made)
    for base in rooms["snapshots"]:
        for file in _all([base], ".yml", ".yaml"):
            made.files[f"snapshots/{file.relative_to(base).with_suffix('.yml').as_posix()}"] = dbt_files.text(
                file, root
            )
        for file in _all([base], ".sql"):
            made.notes.append(f"{file.relative_to(root)}: declare the snapshot in YAML, as dbt does since 1.9")
    for base in _paths(root, settings, TESTS, "tests"):
        for file in _all([base], ".sql"):
            _singular(file, base, root, made)
    for name in ("packages.yml", "dependencies.yml"):
        if (root / name).exists():
            made.notes.append(f"{name}: packages have no equal. Copy the macros that you call into macros/")
    _sources(made)


def _paths(root: Path, settings: Mapping[str, Any], key: str, default: str) -> list[Path]:
    listed = settings.get(key) or [default]
    found = [(root / str(path)).resolve() for path in listed]
    for path in found:
        if not path.is_relative_to(root):
            raise UsageError(f"`{key}` of {SETTINGS} leads out of the project: {path}")
    return [path for path in found if path.is_dir()]


def _all(folders: list[Path], *suffixes: str) -> list[Path]:
    """Return the files below folders, without hidden ones and links, which may lead anywhere."""
    return [
        file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.suffix in suffixes and file.is_file() and not file.is_symlink() and not file.name.startswith(".")
    ]


def _seeds(root: Path, folders: list[Path], made: Import) -> None:
    """Copy the seeds, each with a contract: the types are inferred from its rows."""
    known: dict[str, Mapping[str, Any]] = {}
    for base in folders:
        for file in _all([base], ".yml", ".yaml"):
            known |= {
                str(node.get("name")): node
                for node in dbt_files.yaml(file, root, dbt_files.PROPERTIES).get("seeds") or ()
            }
    for found in made.converted.values():
        known |= {str(node.get("name")): node for node in found.seeds}
    for base in folders:
        for file in _all([base], ".csv"):
            made.files[f"seeds/{file.relative_to(base).as_posix()}"] = dbt_files.text(file, root)
            (table,) = tables.of_samples([samples.sample(file.parent, file.name)], file.stem, alone=True)
            node = known.get(file.stem, {})
            given = {str(key).lower(): str(kind) for key, kind in _of_config(node, "column_types").items()}
            about = {str(column.get("name")).lower(): column for column in node.get("columns") or ()}
            columns = []
            for column in table.columns:
                kind = given.get(column.name.lower(), column.type)
                described = about.get(column.name.lower(), {}).get("description")
                written = {"name": column.name, "data_type": TYPES.get(kind.lower(), kind)}
                columns.append({**written, **({"description": str(described)} if described else {})})
            entry: dict[str, Any] = {"name": file.stem}
            entry |= {"description": str(node["description"])} if node.get("description") else {}
            made.files[f"seeds/{file.relative_to(base).with_suffix('.yml').as_posix()}"] = _dumped(
                {"seeds": [{**entry, "columns": columns}]}
            )
            if any(column.get("tests") or column.get("data_tests") for column in about.values()):
                made.notes.append(
                    f"seeds/{file.name}: tests of a seed were left out. Put them on a model that reads it"
                )


def _of_config(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    config = node.get("config") or {}
    return config.get(key) or config.get(f"+{key}") or {}


def _macros(file: Path, root: Path, made: Import) -> None:
    """Write each macro of a file into a file of its own."""
    text, name = dbt_files.text(file, root), file.relative_to(root).as_posix()
    for match in MACRO.finditer(text):
        if match[1] in OF_DBT:
            made.notes.append(f"{name}: `{match[1]}` was left out: a table has the name of its file")
        else:
            made.files[f"macros/{match[1]}.sql"] = match[0] + "\n"
    if re.search(r"\{%-?\s*(data_)?test\s", text):
        made.notes.append(f"{name}: generic tests have no equal. Write an expectation or a SQL check")


def _singular(file: Path, base: Path, root: Path, made: Import) -> None:
    """Write a singular test as a SQL check, which reads one model."""
    text, name = dbt_files.text(file, root), file.relative_to(root).as_posix()
    read = {match[1] for match in READ.findall(text)}
    if re.search(r"\{%-?\s*(data_)?test\s", text):
        made.notes.append(f"{name}: generic tests have no equal. Write an expectation or a SQL check")
    elif len(read) != 1 or bad_name(file.stem):
        made.notes.append(f"{name}: a SQL check reads one model. Rewrite it, or make it a model with an expectation")
    else:
        made.files[f"expectations/{file.relative_to(base).as_posix()}"] = text
        made.converted.setdefault("_singular.yml", Converted()).tables |= read


def _sources(made: Import) -> None:
    """Read a source whose table is a seed as that seed; report the others."""
    seeds = {Path(name).stem for name in made.files if name.startswith("seeds/") and name.endswith(".csv")}
    declared = {
        (str(group.get("name")), str(table.get("name"))): str(table.get("identifier") or table.get("name"))
        for found in made.converted.values()
        for group in found.sources
        for table in group.get("tables") or ()
    }
    for (group, table), identifier in declared.items():
        if identifier in seeds:
            made.notes.append(
                f"source {group}.{table}: it is the seed {identifier}, so models read ref('{identifier}')"
            )
        else:
            made.notes.append(
                f"source {group}.{table}: say which files it lands in models/_sources.yml, for example with "
                "`sqlrun init --from`"
            )

    def written(match: re.Match[str]) -> str:
        identifier = declared.get((match[2], match[4]), match[4])
        return f"ref('{identifier}')" if identifier in seeds else match[0]

    for name, text in made.queries.items():
        made.queries[name] = SOURCE.sub(written, text)
    for found in made.converted.values():
        for test in found.unit_tests:
            for given in test.get("given") or ():
                given["input"] = SOURCE.sub(written, str(given.get("input")))


def _stored(settings: Mapping[str, Any], made: Import) -> None:
    """Store the views that checks read: a view has no rows of its own."""
    layers = dict(_layers(settings))
    entries = {node["name"]: node for found in made.converted.values() for node in found.models}
    wanted = set[str]().union(*(found.tables for found in made.converted.values()))
    for path, text in made.queries.items():
        name, folders = Path(path).stem, ["/".join(Path(path).parts[:depth]) for depth in range(len(Path(path).parts))]
        kind = next((layers[folder] for folder in reversed(folders) if folder in layers), "view")
        kind = entries.get(name, {}).get("config", {}).get("materialized", kind)
        match = STORED.search(text)
        kind = match[3] if match else kind
        if kind == "ephemeral":
            text = STORED.sub(lambda found: f"{found[1]}{found[2]}view{found[2]}", text)
            kind = "view"
        if kind == "view" and name in wanted:
            made.notes.append(f"models/{path}: stored as a table, because its tests read stored rows")
            if match:
                text = STORED.sub(lambda found: f"{found[1]}{found[2]}table{found[2]}", text)
            elif name in entries:
                entries[name].setdefault("config", {})["materialized"] = "table"
            else:
                text = "{{ config(materialized='table') }}\n" + text
        made.queries[path] = text


def _layers(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the folders of models with their materialization, of the project's own models."""

    def walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for key, value in node.items() if isinstance(node, Mapping) else ():
            if str(key).removeprefix("+") == "materialized":
                yield "/".join(path), str(value)
            elif isinstance(value, Mapping) and not str(key).startswith("+"):
                yield from walk(value, (*path, str(key)))

    own = (settings.get("models") or {}).get(str(settings.get("name")), {})
    yield from walk(own, ())


def _settings(settings: Mapping[str, Any], made: Import) -> dict[str, str]:
    """Return the settings, the profiles and the ignored files of the new project."""
    name = tables.identifier(str(settings.get("name") or "project"))
    files = dict(texts.common(name))
    own = settings.get("vars") or {}
    values = {
        **{k: v for k, v in own.items() if not isinstance(v, Mapping)},
        **(own.get(str(settings.get("name"))) or {}),
    }
    layers = {folder: "view" if kind == "ephemeral" else kind for folder, kind in _layers(settings)}
    lines = [files["pyproject.toml"]]
    if values:
        lines += ["[tool.sqlrun.vars]", *(f"{_key(key)} = {_toml(value)}" for key, value in values.items()), ""]
    present = {"/".join(Path(path).parts[:d]) for path in made.queries for d in range(len(Path(path).parts))}
    for folder in sorted({"": "view", **layers}):
        kind = layers.get(folder, "view")
        if folder not in present and folder:
            continue
        if kind not in ("table", "view"):
            made.notes.append(
                f"{SETTINGS}: `{kind}` of models/{folder} is `table`: sqlrun maintains every table incrementally"
            )
            kind = "table"
        header = ".".join(["tool.sqlrun.models", *(f'"{part}"' for part in folder.split("/") if part)])
        lines += [f"[{header}]", f'materialized = "{kind}"', ""]
    for key in ("on-run-start", "on-run-end", "dispatch", "query-comment", "semantic-models"):
        if settings.get(key):
            made.notes.append(f"{SETTINGS}: `{key}` has no equal, and was left out")
    return {**files, "pyproject.toml": "\n".join(lines)}


def _key(name: Any) -> str:
    """Return a key for TOML, in quotes if it needs them."""
    return str(name) if BARE.fullmatch(str(name)) else json.dumps(str(name))


def _toml(value: Any) -> str:
    """Return a value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
        case int() | float():
            return str(value)
        case None:
            return '""'
        case _:
            return json.dumps(str(value))


def _dumped(value: Any) -> str:
    """Return a value as YAML in blocks."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()
