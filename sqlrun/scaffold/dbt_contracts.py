"""dbt's YAML of models as sqlrun's contracts: what has an equal stays, what has none is left out and reported. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.load.constraints import ARGUMENTS, PLAIN, REF
from sqlrun.load.contract import COLUMN_KEYS, CONFIG_KEYS, MODEL_KEYS

DOC = re.compile(
    r"""\{\{\s*doc\(\s*(['"])(?:\w+\.)?(\w+)\1\s*\)\s*\}\}|\{\{\s*doc\(\s*['"]\w+['"],\s*(['"])(\w+)\3\s*\)\s*\}\}"""
)
BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
TESTS = ("data_tests", "tests")


@dataclass
class Converted:
    """The entries of a file under `models:`, its unit tests, and what was said of it.

    `tables` are the models whose rows must be stored: checks read them. `seeds` and `sources` are entries as they are.
    """

    models: list[dict[str, Any]] = field(default_factory=list)
    unit_tests: list[Any] = field(default_factory=list)
    seeds: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def docs(text: str) -> dict[str, str]:
    """Return the doc blocks of a Markdown file.

    >>> docs("{% docs status %}\\nWhere it is.\\n{% enddocs %}")
    {'status': 'Where it is.'}
    """
    return {name: body.strip() for name, body in BLOCK.findall(text)}


def converted(file: str, root: Any, blocks: Mapping[str, str]) -> Converted:
    """Return what a file of dbt's properties says, as sqlrun's."""
    found = Converted()
    for key, value in root.items() if isinstance(root, Mapping) else ():
        match key:
            case "version":
                continue
            case "models":
                found.models += [_model(file, node, blocks, found) for node in value or ()]
            case "unit_tests":
                found.unit_tests += [_plain(node) for node in value or ()]
            case "seeds":
                found.seeds += [_plain(node) for node in value or ()]
            case "sources":
                found.sources += [_plain(node) for node in value or ()]
            case _:
                found.notes.append(f"{file}: `{key}` has no equal, and was left out")
    return found


def _model(file: str, node: Mapping[str, Any], blocks: Mapping[str, str], found: Converted) -> dict[str, Any]:
    name = str(node.get("name"))
    where = f"{file}: {name}"
    made: dict[str, Any] = {"name": name}
    for key, value in node.items():
        match key:
            case "name" | "columns":
                continue
            case "description":
                made[key] = _described(str(value), blocks, where, found)
            case "config":
                made[key] = _config(value or {}, where, found)
            case "data_tests" | "tests":
                for test in value or ():
                    found.notes.append(
                        f"{where}: the test `{_word(test)}` of the model has no equal. Write an expectation"
                    )
            case _ if key in MODEL_KEYS:
                made[key] = _plain(value)
            case _:
                found.notes.append(f"{where}: `{key}` was left out")
    columns = [_column(where, column, blocks, found) for column in node.get("columns") or ()]
    _one_unique(where, columns, found)
    if columns:
        made["columns"] = columns
    if any(key in column for column in columns for key in (*TESTS, "constraints")) or made.get("grain"):
        found.tables.add(name)
    return {key: value for key, value in made.items() if value != {}}


def _column(where: str, node: Mapping[str, Any], blocks: Mapping[str, str], found: Converted) -> dict[str, Any]:
    name = str(node.get("name"))
    made: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "description":
                made[key] = _described(str(value or ""), blocks, f"{where}.{name}", found)
            case "data_tests" | "tests":
                kept = list(_tests(f"{where}.{name}", value or (), found))
                if kept:
                    made["data_tests"] = made.get("data_tests", []) + kept
            case _ if key in COLUMN_KEYS:
                made[key] = _plain(value)
            case _:
                found.notes.append(f"{where}.{name}: `{key}` was left out")
    return {key: value for key, value in made.items() if value != ""}


def _tests(where: str, tests: Any, found: Converted) -> Iterator[Any]:
    for test in tests:
        word = _word(test)
        if word in PLAIN or word in ARGUMENTS["data_tests"]:
            plain = _plain(test)
            if word == "relationships" and isinstance(plain, dict):
                found.tables |= _target(plain[word])
            yield plain
        else:
            found.notes.append(f"{where}: the test `{word}` has no equal. Write an expectation")


def _target(arguments: Any) -> set[str]:
    """Return the model that `to: ref('x')` names, as a set; dbt has it among the arguments or below `arguments:`."""
    inner = arguments.get("arguments", arguments) if isinstance(arguments, Mapping) else {}
    found = REF.search(str(inner.get("to"))) if isinstance(inner, Mapping) else None
    return {found[2]} if found is not None else set()


def _one_unique(where: str, columns: list[dict[str, Any]], found: Converted) -> None:
    """Leave `unique` on the first column that has it: it is the grain."""
    holders = [column for column in columns if "unique" in map(_word, column.get("data_tests", ()))]
    for column in holders[1:]:
        column["data_tests"] = [test for test in column["data_tests"] if _word(test) != "unique"]
        if not column["data_tests"]:
            del column["data_tests"]
        found.notes.append(
            f"{where}.{column['name']}: a second `unique` was left out; `{holders[0]['name']}` is the grain. Write "
            "expect_column_values_to_be_unique in expectations/"
        )


def _config(node: Mapping[str, Any], where: str, found: Converted) -> dict[str, Any]:
    made = {}
    for key, value in node.items():
        if key in CONFIG_KEYS:
            made[key] = "view" if value == "ephemeral" else _plain(value)
        else:
            found.notes.append(f"{where}: `{key}` of `config` was left out")
    return made


def _described(text: str, blocks: Mapping[str, str], where: str, found: Converted) -> str:
    def written(match: re.Match[str]) -> str:
        name = match[2] or match[4]
        if name not in blocks:
            found.notes.append(f"{where}: there is no doc block `{name}`")
        return blocks.get(name, "")

    return DOC.sub(written, text).strip()


def _word(test: Any) -> str:
    return str(next(iter(test), "")) if isinstance(test, Mapping) else str(test)


def _plain(value: Any) -> Any:
    """Return a YAML value as plain lists, dictionaries and scalars."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
