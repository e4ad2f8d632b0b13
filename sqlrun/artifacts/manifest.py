"""dbt's manifest.json, version 12, of a project. Pure.

Tools for dbt read it: documentation sites, linters, coverage, lineage, orchestrators. It has dbt's keys alone, because
some readers reject others; what sqlrun adds is in `meta.sqlrun`. Hidden tables aren't nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlrun.artifacts import check_nodes, declared_checks, nodes, unique_ids
from sqlrun.artifacts.nodes import Naming, Values
from sqlrun.plan.values import Workspace

SCHEMA = "https://schemas.getdbt.com/dbt/manifest/v12.json"
# Kinds of nodes that dbt has and sqlrun lacks.
NONE: Mapping[str, Values] = {
    kind: {}
    for kind in ("docs", "metrics", "groups", "selectors", "disabled", "group_map", "saved_queries", "semantic_models")
}


def manifest(workspace: Workspace, naming: Naming, at: datetime, invocation: str) -> Values:
    """Return the document; `at` is the time of writing, `invocation` the id of the run of the command."""
    project = workspace.project
    tables = {naming.id_of(one.name): nodes.seed(naming, one) for one in project.seeds}
    for model in workspace.models:
        node = nodes.model(naming, workspace, model)
        tables[node["unique_id"]] = node
        contract = model.query.rendered.model
        for check, columns in declared_checks.of(workspace, model):
            node = check_nodes.check(naming, contract, check, columns)
            tables[node["unique_id"]] = node
    landed = {model.source.table: model.query.rendered.model for model in workspace.models if model.source}
    sources = [nodes.source(naming, one, landed.get(one.table)) for one in project.sources]
    exposures = [nodes.exposure(naming, one) for one in project.exposures]
    unit_tests = [check_nodes.unit_test(naming, one) for one in project.unit_tests if not one.macro]
    macros = [nodes.macro(naming, one) for one in project.macros]
    parents = {node: list(values["depends_on"].get("nodes", [])) for node, values in tables.items()}
    parents |= {one["unique_id"]: [] for one in sources}
    parents |= {one["unique_id"]: list(one["depends_on"]["nodes"]) for one in (*exposures, *unit_tests)}
    return {
        "metadata": metadata(naming, at, invocation),
        "nodes": tables,
        "sources": {one["unique_id"]: one for one in sources},
        "macros": {one["unique_id"]: one for one in macros},
        "exposures": {one["unique_id"]: one for one in exposures},
        "unit_tests": {one["unique_id"]: one for one in unit_tests},
        "parent_map": parents,
        "child_map": children_of(parents),
        **NONE,
        "functions": {},
    }


def children_of(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the nodes that read each node, by name.

    >>> children_of({"b": ["a"], "a": []})
    {'b': [], 'a': ['b']}
    """
    found: dict[str, list[str]] = {node: [] for node in parents}
    for node in sorted(parents):
        for parent in parents[node]:
            found[parent].append(node)
    return found


def metadata(naming: Naming, at: datetime, invocation: str) -> Values:
    """Return the head of a manifest."""
    return {
        **unique_ids.head(SCHEMA, at, invocation),
        "project_name": naming.project.name,
        "project_id": unique_ids.project_id(naming.project.name),
        "user_id": None,
        "send_anonymous_usage_stats": False,
        "adapter_type": naming.adapter,
        "quoting": {"database": True, "schema": True, "identifier": True, "column": None},
        "run_started_at": unique_ids.moment(at),
    }


def text(document: Values) -> str:
    """Return a document as JSON text; types that JSON lacks become text."""
    return json.dumps(document, default=_as_json) + "\n"


def _as_json(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
