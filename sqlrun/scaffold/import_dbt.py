"""`sqlrun import-dbt`: a dbt project as a project of sqlrun, and a report of what changed. Shell: both folders."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlrun import pipeline
from sqlrun.errors import Problem, ProjectError, UsageError
from sqlrun.load.settings import FILE
from sqlrun.runtime import atomic_files
from sqlrun.runtime.text_table import counted
from sqlrun.scaffold import dbt_contracts, dbt_files, dbt_folders, dbt_jinja, dbt_models, dbt_settings
from sqlrun.scaffold.dbt_settings import SETTINGS
from sqlrun.scaffold.imported import Import

# The message of a column that only a contract has.
MISSING = re.compile(r"column `(?P<column>[^`]+)` of the contract is missing in the query, (?P<file>models/\S+\.sql)")
UNTYPED = re.compile(r"the type of column `([^`]+)` can't be inferred")
UNLISTED = re.compile(r"column `([^`]+)` is not in the contract of `(\w+)`")
# Columns of a model may show only after those of the models that it reads are right.
MOST_ROUNDS = 20


def import_dbt(folder: Path, out: Path | None) -> tuple[list[str], bool]:
    """Convert a dbt project, and write it to `out`; return the lines to print, and whether the result is valid.

    Raises: UsageError if there is no dbt project, or `out` has files.
    """
    root = folder.resolve()
    if not (root / SETTINGS).is_file():
        raise UsageError(f"{folder} has no {SETTINGS}")
    if _is_converted(root):
        raise UsageError(
            f"{folder} is a project of sqlrun already: {FILE} has [tool.sqlrun]. `sqlrun build` lists what is left"
        )
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} isn't empty. Nothing was written")
    settings = dbt_files.yaml(root / SETTINGS, root, dbt_files.SETTINGS)
    made = Import(str(settings.get("name") or "project"))
    made.packages.append(made.name)
    profiles = _profiles(root, made)
    dbt_folders.read(root, settings, made)
    _without_models(made)
    _sources(made)
    layers = dbt_settings.layers(settings, made)
    dbt_models.convert(made)
    dbt_models.leave_out_types(made, layers)
    dbt_models.add_tests(made)
    files = dbt_settings.files(settings, profiles, layers, made)
    dbt_models.store_views(made, layers)
    _written(made)
    made.files |= files
    beside = Path(tempfile.mkdtemp(prefix=".import-", dir=_existing(out) if out is not None else None))
    try:
        left = _checked(beside, made)
        notes = dict.fromkeys(made.notes)
        lines = [*notes, f"{counted(len(made.queries), 'model')}, {counted(len(made.files), 'file')}."]
        if out is not None:
            beside.chmod(0o755)
            beside.replace(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return _ended(out, lines, left)


def _profiles(root: Path, made: Import) -> Mapping[str, Any]:
    """Return the profiles, {} if there are none or they can't be read: a project is the same without."""
    file = root / "profiles.yml"
    try:
        found = dbt_files.yaml(file, root, dbt_files.PROFILES) if file.is_file() else {}
    except (ProjectError, UsageError):
        made.notes.append("profiles.yml: it can't be read, and was left out")
        return {}
    return found if isinstance(found, Mapping) else {}


def _existing(out: Path) -> Path:
    """Return the folder above `out`, which is made if there is none."""
    above = out.absolute().parent
    above.mkdir(parents=True, exist_ok=True)
    return above


def _ended(out: Path | None, lines: list[str], left: str) -> tuple[list[str], bool]:
    if out is None:
        left_lines = ["Left to edit by hand:", "", *left.split("\n")] if left else []
        return [*lines, *left_lines, "Nothing was written. Write the project with --write FOLDER."], True
    if left:
        return [*lines, f"Wrote {out}. Edit by hand what is left:", "", *left.split("\n")], False
    return [*lines, f"Wrote {out}. Next: cd {out} && sqlrun build"], True


def _checked(folder: Path, made: Import) -> str:
    """Write the project to an empty folder, and return the problems that it still has.

    A column that only a YAML file has is left out first, since dbt ignores it.
    """
    written: dict[str, str] = {}
    for _ in range(MOST_ROUNDS):
        for name, text in made.files.items():
            if written.get(name) != text:
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                atomic_files.put(file, text.encode(), synced=False)
                written[name] = text
        try:
            pipeline.prepare(folder.resolve())
        except ProjectError as error:
            left, changed = str(error), [_fixed(problem, made) for problem in error.problems]
            if not any(changed):
                return left
            _written(made)
        else:
            return ""
    return left


def _fixed(problem: Problem, made: Import) -> bool:
    """Change a contract so that a problem goes, if dbt has no such problem; return whether that was done."""
    return _without_column(problem, made) or _with_type(problem, made) or _with_column(problem, made)


def _with_column(problem: Problem, made: Import) -> bool:
    """List a column that a query has beside those of its contract, whose types had to be used."""
    found = UNLISTED.search(problem.message)
    entry = made.entries.get(found[2]) if problem.code == "SR306" and found is not None else None
    if found is None or entry is None or found[2] in made.enforced:
        return False
    entry["columns"] = [*entry.get("columns", ()), {"name": found[1]}]
    return True


def _with_type(problem: Problem, made: Import) -> bool:
    """Use the type that dbt's files have for a column whose type can't be inferred."""
    found = UNTYPED.search(problem.message)
    model = Path(problem.place.file).stem
    kind = made.types.pop((model, found[1]), None) if problem.code == "SR312" and found is not None else None
    for column in made.entries.get(model, {}).get("columns", ()) if kind is not None else ():
        if found is not None and column["name"] == found[1]:
            column["data_type"] = kind
    return kind is not None


def _without_column(problem: Problem, made: Import) -> bool:
    """Leave out the column of a problem, if the query lacks it and no test needs it; return whether that was done."""
    found = MISSING.search(problem.message)
    entry = made.entries.get(Path(found["file"]).stem) if problem.code == "SR307" and found is not None else None
    if found is None or entry is None:
        return False
    kept = [
        column for column in entry.get("columns", ()) if column["name"] != found["column"] or "data_tests" in column
    ]
    if len(kept) == len(entry.get("columns", ())):
        return False
    made.notes.append(f"{found['file']}: the column {found['column']} was left out of its contract: no query has it")
    if kept:
        entry["columns"] = kept
    else:
        del entry["columns"]
    return True


def _is_converted(root: Path) -> bool:
    """Return whether a folder has settings of sqlrun, so that a part of it may be converted already."""
    return (root / FILE).is_file() and "[tool.sqlrun" in dbt_files.text(root / FILE, root)


def _sources(made: Import) -> None:
    """Note for each source what it is read from."""
    for group, table in made.source_tables:
        where = f"source {group.get('name')}.{table.get('name')}"
        name = str(table.get("identifier") or table.get("name"))
        if name in made.seeds:
            made.notes.append(f"{where}: it is the seed {name}, so models read ref('{name}')")
        else:
            made.notes.append(
                f"{where}: say which files it lands in models/_sources.yml, for example with `sqlrun init --from`"
            )
        uses = list(dbt_contracts.uses_of(where, name, table))
        made.uses += uses if name in made.seeds else []
        if uses and name not in made.seeds:
            made.notes.append(f"{where}: its tests were left out. Put them on the model that reads it")
        if table.get("freshness") or group.get("freshness"):
            made.notes.append(
                f"{where}: `freshness` was left out. Set `event_time` and `freshness` in the contract of its model"
            )


def _without_models(made: Import) -> None:
    """Leave out what YAML files say of models that there are not: dbt ignores it, too."""
    known = set(made.models)
    for file, found in made.converted.items():
        for node in found.models:
            if node["name"] not in known:
                made.notes.append(f"models/{file}: left out, because there is no model `{node['name']}`")
        found.models = [node for node in found.models if node["name"] in known]
        found.uses = [use for use in found.uses if use.table in known | set(made.seeds)]


def _written(made: Import) -> None:
    """Add the files of queries, macros, contracts and suites."""

    def plain(text: str) -> str:
        return dbt_jinja.rewritten(text, made.packages, made.source)

    made.files |= {f"models/{path}": text for path, text in made.queries.items()}
    made.files |= {f"macros/{name}.sql": plain(text) + "\n" for name, text in made.macros.items()}
    exposures = []
    for name, found in made.converted.items():
        exposures += found.exposures
        for test in found.unit_tests:
            for given in test.get("given") or ():
                given["input"] = plain(str(given.get("input")))
        entries = {"models": found.models, "unit_tests": found.unit_tests}
        if any(entries.values()):
            made.files[f"models/{name}"] = dbt_files.dumped({key: value for key, value in entries.items() if value})
    if exposures:
        for one in exposures:
            one["depends_on"] = [plain(str(name)) for name in one.get("depends_on") or ()]
            one.setdefault("description", str(one.get("label") or one.get("name")))
            owner = one.get("owner")
            if isinstance(owner, dict) and owner.get("email"):
                owner.setdefault("name", owner["email"])
        made.files["models/_exposures.yml"] = dbt_files.dumped({"exposures": exposures})
