"""The JSON schemas of YAML files: what is valid for sqlrun is valid for them, and unknown keys are not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.errors import ProjectError
from sqlrun.pipeline import prepare
from sqlrun.scaffold import json_schemas
from sqlrun.scaffold.command import init

ROOT = Path(__file__).parents[2]
SCHEMAS = json_schemas.schemas()
PROJECTS = ("", "examples/shop_cdc/", "sqlrun/scaffold/starter/")


def loaded(text: str) -> Any:
    """Return a YAML text's value as editors see it: a date is a text."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        sign: [(tag, regex) for tag, regex in found if not tag.endswith("timestamp")]
        for sign, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load(text, Loader)


def faults(kind: str, value: Any) -> list[str]:
    found = jsonschema.Draft7Validator(SCHEMAS[kind]).iter_errors(value)
    return [f"{list(one.absolute_path)}: {one.message}" for one in found]


def files() -> list[tuple[str, str]]:
    """Return the YAML files of the repository's projects, each with its kind."""
    found = []
    for project in PROJECTS:
        for folder in ("models", "seeds", "macros", "expectations", "profiles"):
            for file in sorted((ROOT / project / folder).rglob("*.yml")):
                name = file.relative_to(ROOT).as_posix()
                found.append((name, json_schemas.kind_of(name.removeprefix(project))))
    return found


def test_each_schema_is_one() -> None:
    for schema in SCHEMAS.values():
        jsonschema.Draft7Validator.check_schema(schema)


@pytest.mark.parametrize(("file", "kind"), files())
def test_the_files_of_projects_are_valid(file: str, kind: str) -> None:
    assert faults(kind, loaded((ROOT / file).read_text())) == []


def test_the_files_of_projects_have_every_usual_kind() -> None:
    usual = {"models", "sources", "exposures", "seeds", "macros", "expectations", "profile"}

    assert usual <= {kind for _, kind in files()}


@pytest.mark.parametrize("folder", sorted((ROOT / "tests/cases/errors").iterdir()), ids=lambda folder: str(folder.name))
def test_a_schema_rejects_nothing_that_sqlrun_reads(folder: Path) -> None:
    """In projects with other mistakes, a file that a schema rejects has a problem of its own."""
    try:
        prepare(folder)
    except ProjectError as error:
        wrong = {problem.place.file for problem in error.problems}
    except Exception:
        return  # it isn't read at all
    else:
        wrong = set()
    for file in folder.rglob("*.yml"):
        name = file.relative_to(folder).as_posix()
        kind = json_schemas.kind_of(name)
        try:
            value = loaded(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if kind and kind != "profile" and name not in wrong and value is not None:
            assert faults(kind, value) == [], name


def objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all closed mappings of a schema."""
    match schema:
        case dict():
            if schema.get("additionalProperties") is False:
                yield schema
            for inner in schema.values():
                yield from objects(inner)
        case list():
            for inner in schema:
                yield from objects(inner)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_an_unknown_key_is_a_fault(kind: str) -> None:
    found = list(objects(SCHEMAS[kind]))

    assert found
    for schema in found:
        one = deepcopy(dict(schema)) | {"required": [], "definitions": SCHEMAS[kind].get("definitions", {})}
        assert not list(jsonschema.Draft7Validator(one).iter_errors({}))
        assert list(jsonschema.Draft7Validator(one).iter_errors({"unknown key": 1}))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("models", "models: [{name: x, config: {materialized: incremental}}]"),
        ("models", "models: [{grain: [a]}]"),
        ("models", "models: [{name: x, columns: [{name: a, nulls: never}]}]"),
        ("sources", "sources: [{name: x, tables: [{name: t, format: xml, columns: []}]}]"),
        ("expectations", "expectations: [{type: x, severity: fatal}]"),
        ("profile", "engine: duckdb"),
        ("selectors", "selectors: [{name: a}]"),
        ("exposures", "exposures: [{name: a, type: page, owner: {name: b}, depends_on: [], description: c}]"),
    ],
)
def test_a_wrong_value_is_a_fault(kind: str, text: str) -> None:
    assert faults(kind, loaded(text)) != []


def test_a_selector_of_the_reference_is_valid() -> None:
    text = (ROOT / "docs/reference/yaml.md").read_text().partition("```yaml\nselectors:")[2].partition("```")[0]

    assert faults("selectors", loaded(f"selectors:{text}")) == []


def test_a_new_project_names_its_schemas(tmp_path: Path) -> None:
    init(tmp_path / "shop", None)

    named = 0
    for file in (tmp_path / "shop").rglob("*.yml"):
        first, _, _ = file.read_text().partition("\n")
        assert first.startswith("# yaml-language-server: $schema=")
        schema = (file.parent / first.partition("=")[2]).resolve()
        assert not list(
            jsonschema.Draft7Validator(json.loads(schema.read_text())).iter_errors(loaded(file.read_text()))
        )
        named += 1
    assert named == 6


def test_the_command_writes_all_schemas_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "shop", None)
    monkeypatch.chdir(tmp_path / "shop/models")
    old = tmp_path / "shop/.schemas/models.json"
    old.write_text("{}")
    done = CliRunner().invoke(main, ["schema"])

    assert done.exit_code == 0, done.output
    assert "Wrote 9 schemas to .schemas/" in done.output
    assert json.loads(old.read_text()) == SCHEMAS["models"]
