"""`dbt_project.yml` and `profiles.yml` as pyproject.toml and profiles. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlrun.scaffold import dbt_contracts, tables, texts
from sqlrun.scaffold.imported import Import

SETTINGS = "dbt_project.yml"
BARE = re.compile("[A-Za-z0-9_-]+")
# Keys whose values have no meaning here, and no effect on a result.
QUIET = (
    "name", "version", "config-version", "profile", "require-dbt-version", "target-path", "log-path", "clean-targets",
    "packages-install-path", "model-paths", "seed-paths", "macro-paths", "snapshot-paths", "test-paths",
    "analysis-paths", "docs-paths", "asset-paths", "vars", "models", "seeds", "dbt-cloud", "flags",
)  # fmt: skip
# Settings whose values are mappings; any other mapping is a folder.
OF_MAPPINGS = ("column_types", "meta", "docs", "contract")
# Settings of folders that mean the same.
TAKEN = ("enabled", "meta", "docs", "group", "access", "contract")
TARGET = re.compile(r"\btarget\.(?!type\b)(\w+)")


def layers(settings: Mapping[str, Any], made: Import) -> dict[str, dict[str, Any]]:
    """Return the settings of each folder of models that sqlrun has, too; others are noted."""
    found: dict[str, dict[str, Any]] = {"": {"materialized": "view"}}
    given = [(name, (inner.get("models") or {}).get(name, {})) for name, _, inner in made.local]
    # The project's own word on a package's models comes last.
    given += [("" if name == made.name else name, node) for name, node in (settings.get("models") or {}).items()]
    known = {"", *(name for name, _, _ in made.local)}
    walked = [one for name, node in given if name in known for one in _walk(node, (name,) if name else ())]
    for folder, key, value in walked:
        where = f"{SETTINGS}: models/{folder}" if folder else f"{SETTINGS}: models"
        if isinstance(value, str) and "{{" in value:
            made.notes.append(f"{where}: `{key}` was left out, because it is a template")
        elif key == "materialized":
            found.setdefault(folder, {})[key] = dbt_contracts.stored(str(value), where, made.notes)
        elif key == "tags":
            found.setdefault(folder, {})[key] = [value] if isinstance(value, str) else list(value)
        elif key in TAKEN:
            found.setdefault(folder, {})[key] = value
            if key == "enabled" and value is False:
                made.disabled |= {name for name, path in made.models.items() if path.startswith(f"{folder}/")}
        else:
            made.notes.append(f"{where}: `{key}` was left out")
    return found


def seed_types(settings: Mapping[str, Any], name: str, notes: list[str]) -> dict[str, Mapping[str, Any]]:
    """Return the declared types of seeds, by the seed's name; other settings of seeds are noted."""
    found: dict[str, Mapping[str, Any]] = {}
    for folder, key, value in _walk((settings.get("seeds") or {}).get(name, {}), ()):
        if key == "column_types" and isinstance(value, Mapping) and folder:
            found[folder.rpartition("/")[2]] = value
        else:
            notes.append(f"{SETTINGS}: {'/'.join(filter(None, ('seeds', folder)))}: `{key}` was left out")
    return found


def _walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    for key, value in node.items() if isinstance(node, Mapping) else ():
        name = str(key)
        if isinstance(value, Mapping) and not name.startswith("+") and name not in OF_MAPPINGS:
            yield from _walk(value, (*path, name))
        else:
            yield "/".join(path), name.removeprefix("+").replace("-", "_"), value


def _vars(settings: Mapping[str, Any], made: Import) -> dict[str, Any]:
    """Return all vars: those of packages, of the project for its packages, and its own, the last one of a name."""
    own = settings.get("vars") or {}
    found: dict[str, Any] = {}
    for name, _, inner in made.local:
        declared = inner.get("vars") or {}
        found |= {key: value for key, value in declared.items() if not isinstance(value, Mapping)}
        found |= declared.get(name) or {}
    packages = [key for key, value in own.items() if isinstance(value, Mapping) and key != made.name]
    for package in packages:
        found |= own[package]
    found |= {key: value for key, value in own.items() if key not in packages and key != made.name}
    return {**found, **(own.get(made.name) or {})}


def files(
    settings: Mapping[str, Any], profiles: Mapping[str, Any], layers: Mapping[str, Mapping[str, Any]], made: Import
) -> dict[str, str]:
    """Return the settings, the profiles and the ignored files of the new project."""
    found = dict(texts.common(tables.identifier(made.name)))
    values = _vars(settings, made)
    lines = [found["pyproject.toml"]]
    if values:
        lines += ["[tool.sqlrun.vars]", *(f"{_key(key)} = {_toml(value)}" for key, value in values.items()), ""]
    output = _output(settings, profiles)
    target = _target(output, made)
    if target:
        lines += ["[tool.sqlrun.target]", *(f"{_key(key)} = {_toml(value)}" for key, value in target.items()), ""]
    present = {"/".join(path.split("/")[:depth]) for path in made.queries for depth in range(path.count("/") + 1)}
    for folder, layer in sorted(layers.items()):
        if folder in present or not folder:
            header = ".".join(["tool.sqlrun.models", *(_key(part) for part in folder.split("/") if part)])
            lines += [f"[{header}]", *(f"{key} = {_toml(value)}" for key, value in layer.items()), ""]
    for key in settings:
        if str(key) not in QUIET and settings[key]:
            made.notes.append(f"{SETTINGS}: `{key}` has no equal, and was left out")
    threads = output[1].get("threads") if output else None
    if isinstance(threads, int) and 1 <= threads <= 256:
        for name in ("profiles/duckdb.yml", "profiles/spark.yml"):
            found[name] = found[name].replace("threads: 2\n", f"threads: {threads}\n")
    return {**found, "pyproject.toml": "\n".join(lines)}


def _output(settings: Mapping[str, Any], profiles: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the name and the values of the profile's output for production, else of its default."""
    profile = profiles.get(str(settings.get("profile")))
    outputs = profile.get("outputs") if isinstance(profile, Mapping) else None
    if not isinstance(profile, Mapping) or not isinstance(outputs, Mapping):
        return None
    for name in ("prod", "production", profile.get("target"), *outputs):
        if isinstance(outputs.get(name), Mapping):
            return str(name), outputs[name]
    return None


def _target(output: tuple[str, Mapping[str, Any]] | None, made: Import) -> dict[str, Any]:
    """Return the values of `target` that templates read."""
    read = {key for text in (*made.queries.values(), *made.macros.values()) for key in TARGET.findall(text)} - {"get"}
    if not read or output is None:
        return {}
    name, values = output
    known = {"name": name, "target_name": name, **{str(key): value for key, value in values.items()}}
    found = {key: known[key] for key in sorted(read) if isinstance(known.get(key), str | int)}
    if found:
        made.notes.append(
            f"templates read `target`: [tool.sqlrun.target] has the values of the output `{name}`, for all environments"
        )
    return found


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
