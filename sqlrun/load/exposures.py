"""YAML values to exposures: the users of tables, and what `sqlrun serve` may publish. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlrun.dashboards.nouns import Dashboard
from sqlrun.errors import Place
from sqlrun.load import dashboards
from sqlrun.load.contract import check_name
from sqlrun.load.dashboard_parts import Tables
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed, spelled
from sqlrun.project import Exposure, Project, Serve

KEYS = (
    "name", "label", "type", "maturity", "url", "description", "tags", "meta", "owner", "depends_on", "config",
)  # fmt: skip
OWNER_KEYS = ("name", "email")
CONFIG_KEYS = ("serve", "dashboard")
SERVE_KEYS = ("owned_by", "keys")
# dbt's words.
TYPES = ("dashboard", "notebook", "analysis", "ml", "application")
MATURITIES = ("low", "medium", "high")
REF = re.compile(r"\s*ref\(\s*(['\"])(\w+)\1\s*\)\s*")
SOURCE = re.compile(r"\s*source\(\s*(['\"])(\w+)\1\s*,\s*(['\"])(\w+)\3\s*\)\s*")


def exposures(reader: Reader, project: Project) -> tuple[Exposure, ...]:
    """Return the exposures of an `_exposures.yml`; each depends on models, seeds or sources of the project."""
    tables: dict[str, tuple[str, ...]] = {m.name: tuple(c.name for c in m.columns) for m in project.models}
    tables |= {s.name: tuple(c.name for c in s.columns) for s in project.seeds}
    shown = Tables.of(project)
    sources = {(s.group, s.name) for s in project.sources}
    root = reader.mapping(
        reader.root, Place(reader.file), "an exposures file", ("version", "exposures"), ("exposures",)
    )
    found: list[Exposure] = []
    for node, place in reader.items(root, "exposures", "the file"):
        node = reader.mapping(node, place, "an exposure", KEYS, ("name", "type", "owner", "depends_on", "description"))
        check_name(reader, node, "an exposure")
        owner = node.get("owner")
        if owner is not None:
            owner = reader.mapping(owner, reader.value_place(node, "owner"), "`owner`", OWNER_KEYS, ("name",))
        refs = _depends_on(reader, node, tables, sources)
        config = _config(reader, node)
        found.append(
            Exposure(
                name=reader.text(node, "name"),
                type=reader.choice(node, "type", TYPES, TYPES[0]),
                description=reader.words(node),
                owner=reader.text(owner, "name"),
                depends_on=refs,
                place=place,
                serve=_serve(reader, config, {name: tables[name] for name in refs}),
                email=reader.text(owner, "email"),
                label=reader.text(node, "label"),
                url=reader.text(node, "url"),
                dashboard=_dashboard(reader, node, config, shown),
                maturity=reader.choice(node, "maturity", MATURITIES, "") if node.get("maturity") is not None else "",
            )
        )
    return tuple(found)


def _depends_on(
    reader: Reader, node: Any, tables: Mapping[str, tuple[str, ...]], sources: set[tuple[str, str]]
) -> tuple[str, ...]:
    refs: list[str] = []
    for index, text in enumerate(reader.texts(node, "depends_on")):
        value = node["depends_on"]
        place = reader.place(value, index) if isinstance(value, list) else reader.value_place(node, "depends_on")
        if (ref := REF.fullmatch(text)) is not None:
            if ref[2] in tables:
                refs.append(ref[2])
                continue
            hint = f"Models and seeds: {listed(tables)}.{did_you_mean(ref[2], tables)}"
            reader.problem("SR202", place, f"unknown model `{ref[2]}`", hint)
        elif (source := SOURCE.fullmatch(text)) is not None:
            if (source[2], source[4]) not in sources:
                hint = f"Sources: {listed('.'.join(one) for one in sorted(sources))}."
                reader.problem("SR203", place, f"unknown source `{source[2]}.{source[4]}`", hint)
        else:
            reader.problem(
                "SR110", place, f"invalid `depends_on`: `{text}`", "Use ref('model') or source('group', 'name')."
            )
    return tuple(dict.fromkeys(refs))


def _config(reader: Reader, node: Any) -> Any:
    if node.get("config") is None:
        return {}
    return reader.mapping(node["config"], reader.value_place(node, "config"), "`config`", CONFIG_KEYS)


def _dashboard(reader: Reader, node: Any, config: Any, tables: Tables) -> Dashboard | None:
    """Read `config: {dashboard: ...}`; None where sqlrun makes no page."""
    if config.get("dashboard") is None:
        return None
    if (kind := reader.text(node, "type")) != TYPES[0] and kind in TYPES:
        place = reader.value_place(node, "type")
        reader.problem("SR110", place, f"an exposure of type `{kind}` has no `dashboard`", "type: dashboard")
    return dashboards.dashboard(reader, config, reader.text(node, "name"), reader.text(node, "label"), tables)


def _serve(reader: Reader, config: Any, tables: Mapping[str, tuple[str, ...]]) -> Serve | None:
    """Read `config: {serve: ...}`; None where nothing is to be served."""
    if config.get("serve") is None:
        return None
    serve = reader.mapping(config["serve"], reader.value_place(config, "serve"), "`serve`", SERVE_KEYS)
    owned_by, keys = reader.text(serve, "owned_by"), reader.texts(serve, "keys")
    columns = {column for names in tables.values() for column in names}
    owned_by = spelled(owned_by, columns)
    if owned_by and owned_by not in columns:
        _no_column(reader, reader.value_place(serve, "owned_by"), owned_by, "owned_by", columns)
    for index, key in enumerate(keys):
        value = serve["keys"]
        if spelled(key, columns) not in columns:
            place = reader.place(value, index) if isinstance(value, list) else reader.value_place(serve, "keys")
            _no_column(reader, place, key, "keys", columns)
    return Serve(owned_by, tuple(dict.fromkeys(spelled(key, columns) for key in keys)))


def _no_column(reader: Reader, place: Place, name: str, key: str, columns: Iterable[str]) -> None:
    hint = f"Columns: {listed(sorted(columns))}.{did_you_mean(name, columns)}"
    reader.problem("SR108", place, f"unknown column `{name}` in `{key}`: no table of the exposure has it", hint)
