"""dbt's YAML of models as sqlrun's contracts: what has an equal stays, what has none is left out and reported. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.load.constraints import REF
from sqlrun.load.contract import COLUMN_KEYS, CONFIG_KEYS, MODEL_KEYS
from sqlrun.scaffold import dbt_tests
from sqlrun.scaffold.dbt_tests import Use

DOC = re.compile(
    r"""\{\{\s*doc\(\s*(['"])(?:\w+\.)?(\w+)\1\s*\)\s*\}\}|\{\{\s*doc\(\s*['"]\w+['"],\s*(['"])(\w+)\3\s*\)\s*\}\}"""
)
BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
TESTS = ("data_tests", "tests")


# Settings of a test that a contract has, too.
KEPT = ("name", "description", "severity")


@dataclass
class Converted:
    """The entries of a file under `models:`, its unit tests, its uses of tests, and what was said of it.

    `tables` are the models whose rows must be stored: checks read them. `seeds`, `sources` and `exposures` are entries
    as they are.
    """

    models: list[dict[str, Any]] = field(default_factory=list)
    unit_tests: list[Any] = field(default_factory=list)
    seeds: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    exposures: list[dict[str, Any]] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    uses: list[Use] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Terms:
    """What decides how a test is written: doc blocks, the project's own generic tests, and the tables below each."""

    blocks: Mapping[str, str]
    own_tests: frozenset[str] = frozenset()
    below: Mapping[str, frozenset[str]] = field(default_factory=dict)


def docs(text: str) -> dict[str, str]:
    """Return the doc blocks of a Markdown file.

    >>> docs("{% docs status %}\\nWhere it is.\\n{% enddocs %}")
    {'status': 'Where it is.'}
    """
    return {name: body.strip() for name, body in BLOCK.findall(text)}


def converted(file: str, root: Any, terms: Terms) -> Converted:
    """Return what a file of dbt's properties says, as sqlrun's."""
    found = Converted()
    for key, value in root.items() if isinstance(root, Mapping) else ():
        match key:
            case "version":
                continue
            case "models":
                found.models += [_model(file, node, terms, found) for node in value or ()]
            case "unit_tests":
                found.unit_tests += [_unit_test(file, plain(node), found) for node in value or ()]
            case "seeds" | "sources" | "exposures":
                listed = {"seeds": found.seeds, "sources": found.sources, "exposures": found.exposures}[key]
                listed += [_documented(file, plain(node), terms, found) for node in value or ()]
            case _:
                found.notes.append(f"{file}: `{key}` has no equal, and was left out")
    return found


def _documented(file: str, node: Any, terms: Terms, found: Converted) -> Any:
    """Return an entry with the texts of doc blocks."""
    if isinstance(node, list):
        return [_documented(file, inner, terms, found) for inner in node]
    if not isinstance(node, dict):
        return node
    return {
        key: described(str(value or ""), terms.blocks, file, found.notes)
        if key == "description"
        else _documented(file, value, terms, found)
        for key, value in node.items()
    }


def _unit_test(file: str, node: dict[str, Any], found: Converted) -> dict[str, Any]:
    """Return a unit test without what is_incremental() and `this` need."""
    macros = (node.get("overrides") or {}).get("macros")
    if isinstance(macros, dict) and "is_incremental" in macros:
        if macros.pop("is_incremental") is True:
            found.notes.append(f"{file}: unit test {node.get('name')}: is_incremental() is never true. Edit the test")
        node["overrides"] = {key: value for key, value in node["overrides"].items() if value}
    if not node.get("overrides"):
        node.pop("overrides", None)
    given = node.get("given") or ()
    if any(str(one.get("input")) == "this" for one in given):
        found.notes.append(f"{file}: unit test {node.get('name')}: rows of `this` were left out")
        node["given"] = [one for one in given if str(one.get("input")) != "this"]
    return node


def _model(file: str, node: Mapping[str, Any], terms: Terms, found: Converted) -> dict[str, Any]:
    name = str(node.get("name"))
    where = f"{file}: {name}"
    made: dict[str, Any] = {"name": name}
    for key, value in node.items():
        match key:
            case "name" | "columns":
                continue
            case "description":
                made[key] = described(str(value or ""), terms.blocks, where, found.notes)
            case "config":
                made[key] = _config(value or {}, where, found)
                if key_of := names_of((value or {}).get("unique_key")):
                    made.setdefault("grain", key_of)
            case "data_tests" | "tests":
                found.uses += [dbt_tests.use_of(where, name, "", plain(test)) for test in value or ()]
            case _ if key in MODEL_KEYS:
                made[key] = plain(value)
            case _:
                found.notes.append(f"{where}: `{key}` was left out")
    columns = [_column(where, name, column, terms, found) for column in node.get("columns") or ()]
    _one_unique(where, name, columns, found)
    if columns:
        made["columns"] = columns
    if any(key in column for column in columns for key in (*TESTS, "constraints")) or made.get("grain"):
        found.tables.add(name)
    return {key: value for key, value in made.items() if value not in ({}, "")}


def _column(where: str, model: str, node: Mapping[str, Any], terms: Terms, found: Converted) -> dict[str, Any]:
    name = str(node.get("name"))
    made: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "description":
                made[key] = described(str(value or ""), terms.blocks, f"{where}.{name}", found.notes)
            case "data_tests" | "tests":
                for test in value or ():
                    use = dbt_tests.use_of(f"{where}.{name}", model, name, plain(test))
                    if _is_native(use, terms, found):
                        made["data_tests"] = [*made.get("data_tests", []), _written(use)]
                    else:
                        found.uses.append(use)
            case _ if key in COLUMN_KEYS:
                made[key] = plain(value)
            case _:
                found.notes.append(f"{where}.{name}: `{key}` was left out")
    return {key: value for key, value in made.items() if value != ""}


def uses_of(where: str, table: str, node: Mapping[str, Any]) -> Iterator[Use]:
    """Yield the uses of tests on a table, and on its columns."""
    for test in (*(node.get("tests") or ()), *(node.get("data_tests") or ())):
        yield dbt_tests.use_of(where, table, "", test)
    for column in node.get("columns") or ():
        for test in (*(column.get("tests") or ()), *(column.get("data_tests") or ())):
            yield dbt_tests.use_of(f"{where}.{column.get('name')}", table, str(column.get("name")), test)


def _is_native(use: Use, terms: Terms, found: Converted) -> bool:
    """Return whether a contract can have a test as it is; the table that a relationship refers to must be stored."""
    if use.word not in dbt_tests.NATIVE or use.word in terms.own_tests or not use.is_plain:
        return False
    if use.settings.get("enabled") is False or use.arguments.get("quote") is False:
        return False
    if use.word == "unique":
        return str(use.settings.get("severity") or "error").lower() == "error"
    if use.word == "relationships":
        to = REF.fullmatch(str(use.arguments.get("to")))
        # A check can't wait for a table that depends on its own model.
        if to is None or to[2] in terms.below.get(use.table, ()) or to[2] == use.table:
            return False
        found.tables.add(to[2])
    return True


def _written(use: Use) -> Any:
    """Return a test as a contract has it."""
    settings = {key: value for key, value in use.settings.items() if key in KEPT}
    if str(settings.get("severity") or "error").lower() == "error":
        settings.pop("severity", None)
    arguments = {key: value for key, value in use.arguments.items() if key != "quote"}
    return {use.word: {**arguments, **settings}} if arguments or settings else use.word


def _one_unique(where: str, model: str, columns: list[dict[str, Any]], found: Converted) -> None:
    """Leave `unique` on the first column that has it, which is the grain; the others are checks of their own."""
    holders = [column for column in columns if "unique" in map(_word, column.get("data_tests", ()))]
    for column in holders[1:]:
        column["data_tests"] = [test for test in column["data_tests"] if _word(test) != "unique"]
        if not column["data_tests"]:
            del column["data_tests"]
        found.uses.append(Use(f"{where}.{column['name']}", model, str(column["name"]), "unique", {}, {}))


def _config(node: Mapping[str, Any], where: str, found: Converted) -> dict[str, Any]:
    made = {}
    for name, value in node.items():
        key = str(name).removeprefix("+")
        if key == "materialized":
            made[key] = stored(str(value), where, found.notes)
        elif key in CONFIG_KEYS:
            made[key] = plain(value)
        elif key != "unique_key":
            found.notes.append(f"{where}: `{key}` of `config` was left out")
    return made


def names_of(value: Any) -> list[str]:
    """Return the columns of a `unique_key`, which is one name or a list; [] for an expression."""
    found = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    return [str(name) for name in found] if all(re.fullmatch(r"\w+", str(name)) for name in found) else []


def stored(kind: str, where: str, notes: list[str]) -> str:
    """Return how sqlrun stores what dbt materializes; another way is noted."""
    if kind in ("table", "view"):
        return kind
    if kind == "ephemeral":
        return "view"
    notes.append(f"{where}: `{kind}` is `table`: sqlrun maintains every table incrementally")
    return "table"


def described(text: str, blocks: Mapping[str, str], where: str, notes: list[str]) -> str:
    """Return a description with the texts of doc blocks."""

    def written(match: re.Match[str]) -> str:
        name = match[2] or match[4]
        if name not in blocks:
            notes.append(f"{where}: there is no doc block `{name}`")
        return blocks.get(name, "")

    return DOC.sub(written, text).strip()


def _word(test: Any) -> str:
    return str(next(iter(test), "")) if isinstance(test, Mapping) else str(test)


def plain(value: Any) -> Any:
    """Return a YAML value as plain lists, dictionaries and scalars."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value
