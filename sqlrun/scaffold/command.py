"""`sqlrun init`: write a new project that builds at once. Shell: the project's files, the sampled files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sqlrun import pipeline
from sqlrun.errors import UsageError
from sqlrun.runtime import atomic_files
from sqlrun.runtime.text_table import counted, escaped
from sqlrun.scaffold import examples, json_schemas, samples, tables, texts
from sqlrun.scaffold.tables import Table

STARTER = Path(__file__).parent / "starter"
# Maximum number of files of which a sample is read; the columns of the others are those of the sampled ones.
MOST_SAMPLES = 200
HIDDEN = "._"


def init(folder: Path, data: Path | None, example: str | None = None) -> list[str]:
    """Write a project into a folder: a starter, one over the files at `data`, or an example; return the lines to print.

    Raises: UsageError, before anything is written, if a file of the project exists or the data can't be read.
    """
    root = folder.resolve()
    name = tables.identifier(root.name)
    files = dict(texts.common(name))
    if example is not None:
        files = dict(examples.files(example))
        described = [f"Wrote the example {example}: {counted(len(files), 'file')}, and schemas for editors."]
        first = examples.EXAMPLES[example]
    elif data is None:
        files |= _starter()
        described = ["Wrote a starter project: a source with sample orders, a staging model and a mart."]
        first = "daily_sales"
    else:
        place = data.resolve()
        declared = _tables(place)
        below = os.path.relpath(place.parent if place.is_file() else place, root).replace(os.sep, "/")
        files |= texts.over_tables(declared, below)
        described, first = _described(declared), f"stg_{declared[0].name}"
    files = json_schemas.marked(files)
    _require_free(root, files if example is None else {**files, examples.ORDERS: ""})
    _write(root, files)
    shown = os.path.relpath(root)
    steps = ["sqlrun build", f"sqlrun show {first}"]
    return [*described, f"Next: {' && '.join(steps if shown == '.' else [f'cd {shown}', *steps])}"]


def write_schemas(root: Path) -> list[str]:
    """Write the JSON schemas of a project's YAML files; return the lines to print."""
    files = json_schemas.files()
    for file, text in files.items():
        (root / file).parent.mkdir(exist_ok=True)
        atomic_files.write(root / file, text)
    return [
        f"Wrote {counted(len(files), 'schema')} to {json_schemas.FOLDER}/. An editor finds them by a "
        "file's first line, for example in models/marts/:",
        json_schemas.modeline("models/marts/x.yml").rstrip(),
    ]


def _starter() -> dict[str, str]:
    return {
        file.relative_to(STARTER).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(STARTER.rglob("*"))
        if file.is_file()
    }


def _tables(data: Path) -> list[Table]:
    """Return the tables at a path: one of a file, one or more of a folder."""
    if data.is_file():
        return tables.of_samples([samples.sample(data.parent, data.name)], data.name.partition(".")[0], alone=True)
    if not data.is_dir():
        raise UsageError(f"{data} doesn't exist")
    found = [path for path in _files(data) if samples.format_of(path)]
    if not found:
        raise UsageError(f"{data} has no file that ends like JSON, CSV, Parquet or Avro")
    return tables.of_samples([samples.sample(data, path) for path in _spread(found)], data.name, alone=False)


def _files(folder: Path) -> list[str]:
    """Return the relative paths of the files below a folder, without names that a source skips."""
    found = []
    for below, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in HIDDEN]
        found += [Path(below, name).relative_to(folder).as_posix() for name in names if name[0] not in HIDDEN]
    return sorted(found)


def _spread(files: list[str]) -> list[str]:
    """Return at most `MOST_SAMPLES` files, spread over all."""
    step = -(-len(files) // MOST_SAMPLES)
    return files[::step]


def _described(found: list[Table]) -> list[str]:
    lines = []
    for table in found:
        lines.append(
            f"{table.name}: {counted(len(table.samples), f'{table.first.format} file')}, "
            f"{counted(len(table.columns), 'column')} inferred; staging model stg_{table.name}."
        )
        if table.left_out:
            shown = ", ".join(map(escaped, table.left_out))
            lines.append(f"{table.name}: no column can be named {shown}; the values stay in stg_{table.name}__rescued.")
    return [*lines, "Check the types in models/staging/_sources.yml, and describe the columns."]


def _require_free(root: Path, files: Mapping[str, str]) -> None:
    taken = [name for name in files if os.path.lexists(root / name)]
    if taken == ["pyproject.toml"] and (root / "pyproject.toml").is_file() and not _is_project(root):
        raise UsageError(
            f"{root / 'pyproject.toml'} already exists. Run `sqlrun init` in a folder of its own, such as "
            f"`sqlrun init {root.name}/analytics`. Nothing was written"
        )
    if taken:
        raise UsageError(f"{root} already has {', '.join(taken[:5])}. Nothing was written")
    for name in files:
        for parent in list((root / name).parents)[: len(Path(name).parts)]:
            if os.path.lexists(parent) and not parent.is_dir():
                raise UsageError(f"{parent} isn't a folder. Nothing was written")


def _is_project(root: Path) -> bool:
    return b"[tool.sqlrun" in (root / "pyproject.toml").read_bytes()


def _write(root: Path, files: Mapping[str, str]) -> None:
    """Write the files, and read them as a project; remove them if that fails."""
    written: list[Path] = []
    made = [parent for parent in (root, *root.parents) if not parent.exists()]
    try:
        for name, text in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not atomic_files.write_new(file, text):
                raise UsageError(f"{file} was written in the meantime")
            written.append(file)
        pipeline.prepare(root)
    except BaseException:
        for file in written:
            file.unlink(missing_ok=True)
        _remove_empty(root, files, made)
        raise


def _remove_empty(root: Path, files: Mapping[str, str], made: list[Path]) -> None:
    folders = {parent for name in files for parent in Path(name).parents if parent != Path()}
    for folder in [root / each for each in sorted(folders, key=lambda each: -len(each.parts))] + made:
        try:
            folder.rmdir()
        except OSError:
            continue
