"""`sqlrun import-dbt`: a dbt project as a project of sqlrun, and a report of what changed. Shell: both folders."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sqlrun import pipeline
from sqlrun.errors import ProjectError, UsageError
from sqlrun.load.settings import FILE
from sqlrun.runtime import atomic_files
from sqlrun.runtime.text_table import counted
from sqlrun.scaffold import dbt_files, dbt_folders, dbt_jinja, dbt_models, dbt_settings
from sqlrun.scaffold.dbt_settings import SETTINGS
from sqlrun.scaffold.imported import Import


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
    profiles = root / "profiles.yml"
    found = dbt_files.yaml(profiles, root, dbt_files.PROFILES) if profiles.is_file() else {}
    dbt_folders.read(root, settings, made)
    _without_models(made)
    _sources(made)
    layers = dbt_settings.layers(settings, made)
    dbt_models.convert(made)
    dbt_models.add_tests(made)
    files = dbt_settings.files(settings, found, layers, made)
    dbt_models.store_views(made, layers)
    _written(made)
    made.files |= files
    notes = dict.fromkeys(made.notes)
    lines = [*notes, f"{counted(len(made.queries), 'model')}, {counted(len(made.files), 'file')}."]
    if out is None:
        return [*lines, "Nothing was written. Write the project with --write FOLDER."], True
    _write(out, made.files)
    return _checked(out, lines)


def _is_converted(root: Path) -> bool:
    """Return whether a folder has settings of sqlrun, so that a part of it may be converted already."""
    return (root / FILE).is_file() and "[tool.sqlrun" in dbt_files.text(root / FILE, root)


def _sources(made: Import) -> None:
    """Note for each source what it is read from."""
    for (group, table), identifier in made.sources.items():
        if identifier in made.seeds:
            made.notes.append(
                f"source {group}.{table}: it is the seed {identifier}, so models read ref('{identifier}')"
            )
        else:
            made.notes.append(
                f"source {group}.{table}: say which files it lands in models/_sources.yml, for example with "
                "`sqlrun init --from`"
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
        made.files["models/_exposures.yml"] = dbt_files.dumped({"exposures": exposures})


def _write(out: Path, files: Mapping[str, str]) -> None:
    """Write all files beside the folder first, so that it is complete or was never written."""
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        for name, text in files.items():
            file = beside / name
            file.parent.mkdir(parents=True, exist_ok=True)
            atomic_files.put(file, text.encode(), synced=False)
        beside.chmod(0o755)
        beside.replace(out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _checked(out: Path, lines: list[str]) -> tuple[list[str], bool]:
    """Return the lines with the problems that the written project still has."""
    try:
        pipeline.prepare(out.resolve())
    except ProjectError as error:
        text = str(error)
        return [*lines, f"Wrote {out}. Edit by hand what is left:", "", *text.split("\n")], False
    return [*lines, f"Wrote {out}. Next: cd {out} && sqlrun build"], True
