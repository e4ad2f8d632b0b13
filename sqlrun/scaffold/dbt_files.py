"""dbt's YAML files, of which only those with the expected forms are read further. Shell: files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlrun.errors import Place, Problem, ProjectError, UsageError
from sqlrun.load.yaml_reader import Reader

# A form is a mapping with forms of some keys, a list of one form, or None for anything. An empty value has every form.
Form = Mapping[str, Any] | list[Any] | None
ANY: Form = None
MAPPING: Mapping[str, Any] = MappingProxyType({})
COLUMN: Mapping[str, Any] = {"config": MAPPING, "tests": [ANY], "data_tests": [ANY]}
TABLE: Mapping[str, Any] = {**COLUMN, "columns": [COLUMN]}
PROPERTIES: Form = {
    "models": [TABLE],
    "seeds": [{**TABLE, "config": {"column_types": MAPPING, "+column_types": MAPPING}}],
    "sources": [{"tables": [TABLE]}],
    "unit_tests": [{"given": [MAPPING], "overrides": {"macros": MAPPING}}],
    "exposures": [MAPPING],
}
SETTINGS: Form = {
    "models": MAPPING,
    "seeds": MAPPING,
    "vars": MAPPING,
    **{f"{name}-paths": [ANY] for name in ("model", "seed", "macro", "snapshot", "test", "analysis")},
}
PROFILES: Form = MAPPING


def below(folders: Iterable[Path], *suffixes: str) -> list[Path]:
    """Return the files below folders, without hidden ones and links, which may lead anywhere."""
    return [
        file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.suffix in suffixes
        and file.is_file()
        and not any(part.is_symlink() for part in (file, *_between(file, folder)))
        and not file.name.startswith(".")
    ]


def _between(file: Path, folder: Path) -> list[Path]:
    return [parent for parent in file.parents if parent.is_relative_to(folder) and parent != folder]


def dumped(value: Any) -> str:
    """Return a value as YAML in blocks."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(
        Decimal, lambda to, number: to.represent_scalar("tag:yaml.org,2002:float", format(number, "f"))
    )
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


def text(file: Path, root: Path) -> str:
    """Return a file's text. Raises: UsageError if it isn't UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file.relative_to(root)} isn't UTF-8: byte {error.start} can't be read") from None


def yaml(file: Path, root: Path, form: Form) -> Any:
    """Return a file's YAML, {} for an empty file.

    Raises: ProjectError for text that isn't YAML, or has another form (SR103).
    """
    problems: list[Problem] = []
    reader = Reader(file.relative_to(root).as_posix(), text(file, root), problems)
    for place, message, hint in _faults(reader, reader.root, form, Place(reader.file), "the file"):
        reader.problem("SR103", place, message, hint)
    if problems:
        raise ProjectError(problems)
    return reader.root if reader.root is not None else {}


def _faults(reader: Reader, node: Any, form: Form, place: Place, name: str) -> Iterator[tuple[Place, str, str]]:
    """Yield the place of each value of another form, what is wrong, and an example."""
    match form:
        case _ if node is None:
            return
        case list():
            if not isinstance(node, list):
                yield place, f"{name} must be a list", f"{name.strip('`')}: [...]"
                return
            for index, item in enumerate(node):
                yield from _faults(reader, item, form[0], reader.place(node, index), f"an item of {name}")
        case Mapping():
            if not isinstance(node, Mapping):
                yield place, f"{name} must be a mapping", "Write a key and its value: `name: orders`."
                return
            for key, inner in form.items():
                if key in node:
                    yield from _faults(reader, node[key], inner, reader.value_place(node, key), f"`{key}`")
