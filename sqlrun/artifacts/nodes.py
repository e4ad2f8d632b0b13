"""The nodes of dbt's manifest, version 12, as JSON values: models, seeds, sources, macros, exposures. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlrun.artifacts import unique_ids
from sqlrun.incremental.compile import Compiled
from sqlrun.plan.values import Workspace
from sqlrun.project import Column, Exposure, Freshness, Macro, Model, Project, Rendered, Seed, Source, Value

Values = dict[str, Any]
MINUTE, HOUR, DAY = 60, 3600, 86400
# Spark's name of its own catalog. Some readers find tables by names of three parts alone.
DATABASE = "spark_catalog"
# dbt's incremental strategies, by those of sqlrun. A table without one runs its whole query in each tick.
STRATEGIES = {"append": "append", "merge": "merge", "keys": "merge", "partitions": "insert_overwrite"}


@dataclass(frozen=True, slots=True)
class Naming:
    """The names that the artifacts give to the tables of a project.

    `schema` is the schema of models and seeds; a source's is its group. `adapter` is an adapter of dbt: compiled SQL is
    Spark's with any engine. `seeds` are the names of the project's seeds.
    """

    project: Project
    schema: str
    adapter: str
    seeds: frozenset[str]

    def relation(self, name: str, schema: str = "") -> str:
        """Return a table's name in Spark SQL."""
        return f"`{DATABASE}`.`{schema or self.schema}`.`{name}`"

    def id_of(self, name: str) -> str:
        """Return the id of a model or a seed."""
        return unique_ids.table(self.project.name, name, is_seed=name in self.seeds)

    def common(self, kind: str, name: str, file: str, unique_id: str) -> Values:
        """Return the values that all nodes have. A path is relative to the folder of its kind."""
        folders = file.split("/")
        inner = folders[1:] if len(folders) > 1 else folders
        return {
            "name": name,
            "resource_type": kind,
            "package_name": self.project.name,
            "path": "/".join(inner),
            "original_file_path": file,
            "unique_id": unique_id,
            "fqn": [self.project.name, *inner[:-1], name],
        }

    def relational(self, name: str, contract_file: str, raw: str) -> Values:
        """Return the values of a node that is a table, or a query."""
        return {
            "database": DATABASE,
            "schema": self.schema,
            "alias": name,
            "checksum": {"name": "sha256", "checksum": hashlib.sha256(raw.encode()).hexdigest()},
            "patch_path": f"{self.project.name}://{contract_file}" if contract_file else None,
            "raw_code": raw,
            "docs": {"show": True, "node_color": None},
        }


def model(naming: Naming, workspace: Workspace, one: Compiled) -> Values:
    """Return the node of a model. What dbt has no word for is in `meta.sqlrun`."""
    rendered = one.query.rendered
    contract, config = rendered.model, rendered.config
    node = naming.common("model", one.name, contract.file, naming.id_of(one.name))
    meta = {**_mapping(config.meta), "sqlrun": _own(workspace, one)}
    strategy = None if one.is_view else STRATEGIES.get(one.own.strategy)
    settings = {
        "enabled": True,
        "alias": config.alias or None,
        "group": config.group or None,
        "docs": _docs(config.docs),
        "materialized": "view" if one.is_view else "incremental" if strategy else "table",
        "incremental_strategy": strategy,
        "unique_key": list(contract.grain) or None,
        "tags": list(config.tags),
        "meta": meta,
        "contract": {"enforced": config.enforced, "alias_types": True},
        "event_time": contract.event_time or None,
        "access": config.access or "protected",
    }
    return {
        **node,
        **naming.relational(one.name, contract.contract_file, contract.sql),
        "config": settings,
        "tags": list(config.tags),
        "description": contract.description,
        "columns": columns(contract.columns),
        "meta": meta,
        "docs": _docs(config.docs),
        "group": config.group or None,
        "relation_name": naming.relation(one.name),
        "language": "sql",
        "refs": refs(rendered.refs),
        "sources": [[s.group, s.name] for s in _sources(naming.project, rendered)],
        "metrics": [],
        "depends_on": {"macros": [], "nodes": parents(naming, rendered)},
        "compiled": True,
        "compiled_code": compiled_code(naming, rendered),
        "extra_ctes_injected": True,
        "extra_ctes": [],
        "contract": {"enforced": config.enforced, "alias_types": True},
        "access": config.access or "protected",
        "constraints": [],
        "primary_key": [] if contract.repeats else list(contract.grain),
    }


def _mapping(text: str) -> Values:
    """Return a mapping that a noun has as JSON."""
    found: Values = json.loads(text) if text else {}
    return found


def _docs(text: str) -> Values:
    """Return how documentation shows a model."""
    found = _mapping(text)
    return {"show": found.get("show", True) is not False, "node_color": found.get("node_color")}


def _own(workspace: Workspace, one: Compiled) -> Values:
    """Return what sqlrun decided about a model."""
    if one.is_view:
        return {"materialized": "view"}
    config = one.query.rendered.config
    return {
        "materialized": config.materialized,
        "strategy": one.own.strategy,
        "method": one.own.method,
        "reason": one.own.reason.code,
        "at_worst": config.at_worst,
        "fingerprint": workspace.prints[one.name],
        "hidden_tables": [stage.name for stage in one.stages if stage.is_hidden],
    }


def parents(naming: Naming, rendered: Rendered) -> list[str]:
    """Return the ids of what a query reads."""
    sources = [unique_ids.source(naming.project.name, one) for one in _sources(naming.project, rendered)]
    return [*map(naming.id_of, rendered.refs), *sources]


def _sources(project: Project, rendered: Rendered) -> list[Source]:
    return [source for source in project.sources if source.table in rendered.sources]


def compiled_code(naming: Naming, rendered: Rendered) -> str:
    """Return the analyst's query after Jinja, in Spark SQL, with the names of relations."""
    text = rendered.sql
    for name in rendered.refs:
        text = text.replace(f"`ref`.`{name}`", naming.relation(name))
    for source in _sources(naming.project, rendered):
        text = text.replace(f"`source`.`{source.table}`", naming.relation(source.name, source.group))
    return text


def seed(naming: Naming, one: Seed) -> Values:
    """Return the node of a seed; its checksum is that of its types and rows."""
    node = naming.common("seed", one.name, one.file, naming.id_of(one.name))
    return {
        **node,
        **naming.relational(one.name, one.contract_file, repr(([column.type for column in one.columns], one.rows))),
        "raw_code": "",
        "config": {"enabled": True, "materialized": "seed", "tags": [], "meta": _mapping(one.meta)},
        "tags": [],
        "description": one.description,
        "columns": columns(one.columns),
        "meta": _mapping(one.meta),
        "relation_name": naming.relation(one.name),
        "root_path": naming.project.root,
        "depends_on": {"macros": []},
    }


def source(naming: Naming, one: Source, landed: Model | None) -> Values:
    """Return a source: its schema is its group. Its limits of age are those of the model that lands it."""
    meta = {"sqlrun": {"format": one.format, "lands": one.lands}}
    return {
        **naming.common("source", one.name, one.place.file, unique_ids.source(naming.project.name, one)),
        "fqn": [naming.project.name, one.group, one.name],
        "database": DATABASE,
        "schema": one.group,
        "source_name": one.group,
        "source_description": "",
        "loader": one.format,
        "identifier": one.name,
        "quoting": {"database": None, "schema": None, "identifier": None, "column": None},
        "loaded_at_field": (landed.event_time or None) if landed else None,
        "freshness": criteria(landed.freshness) if landed and landed.freshness else None,
        "external": {"location": one.path, "file_format": one.format} if one.path else None,
        "description": one.description,
        "columns": columns(one.columns),
        "meta": meta,
        "source_meta": {},
        "tags": [],
        "config": {"enabled": True, "meta": meta, "tags": []},
        "relation_name": naming.relation(one.name, one.group),
    }


def macro(naming: Naming, one: Macro) -> Values:
    """Return a macro."""
    return {
        "name": one.name,
        "resource_type": "macro",
        "package_name": naming.project.name,
        "path": one.file,
        "original_file_path": one.file,
        "unique_id": unique_ids.macro(naming.project.name, one.name),
        "macro_sql": one.text,
        "depends_on": {"macros": []},
        "description": "",
        "meta": {},
        "docs": {"show": True, "node_color": None},
        "arguments": [],
    }


def exposure(naming: Naming, one: Exposure) -> Values:
    """Return an exposure."""
    return {
        **naming.common("exposure", one.name, one.place.file, unique_ids.exposure(naming.project.name, one)),
        "type": one.type,
        "owner": {"name": one.owner or None, "email": one.email or None},
        "description": one.description,
        "label": one.label or None,
        "maturity": one.maturity or None,
        "url": one.url or None,
        "meta": {},
        "tags": [],
        "config": {"enabled": True, "tags": [], "meta": {}},
        "depends_on": {"macros": [], "nodes": [naming.id_of(name) for name in one.depends_on]},
        "refs": refs(one.depends_on),
        "sources": [],
        "metrics": [],
    }


def refs(names: Iterable[str]) -> list[Values]:
    """Return references to models and seeds by their names."""
    return [{"name": name, "package": None, "version": None} for name in names]


def columns(given: Iterable[Column]) -> Values:
    """Return the columns of a table by name; a unit is in `meta`."""
    return {column.name: _column(column) for column in given}


def _column(column: Column) -> Values:
    meta = {**_mapping(column.meta), **({"unit": column.unit} if column.unit else {})}
    return {
        "name": column.name,
        "description": column.description,
        "meta": meta,
        "data_type": column.type,
        "constraints": [] if column.nullable else [constraint("not_null")],
        "quote": None,
        "config": {"meta": meta, "tags": list(column.tags)},
        "tags": list(column.tags),
        "doc_blocks": [],
    }


def constraint(kind: str) -> Mapping[str, Value]:
    """Return a constraint; sqlrun checks it in each tick, and the table's format doesn't enforce it."""
    return {
        "type": kind,
        "name": None,
        "expression": None,
        "warn_unenforced": True,
        "warn_unsupported": True,
        "to": None,
        "to_columns": [],
    }


def criteria(declared: Freshness) -> Values:
    """Return limits in dbt's form; a limit that is no whole number of minutes is rounded up.

    >>> from sqlrun.errors import Place
    >>> criteria(Freshness(Place("x"), warn_after=7200.0))
    {'warn_after': {'count': 2, 'period': 'hour'}, 'error_after': {'count': None, 'period': None}, 'filter': None}
    """
    return {
        "warn_after": _limit(declared.warn_after),
        "error_after": _limit(declared.error_after),
        "filter": None,
    }


def _limit(seconds: float | None) -> dict[str, Any]:
    if seconds is None:
        return {"count": None, "period": None}
    for period, size in (("day", DAY), ("hour", HOUR)):
        if seconds % size == 0 and seconds >= size:
            return {"count": int(seconds // size), "period": period}
    return {"count": -int(-seconds // MINUTE), "period": "minute"}
