"""A project compared with earlier artifacts: the nodes of `state:`, `result:` and `source_status:`. Pure.

What dbt calls a state is a folder with its manifest, and the results of a build. A check belongs to its table here: a
model is also modified if one of its checks or unit tests is new or has changed, and has the results of its checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlrun.artifacts.nodes import Values

Marks = dict[str, set[str]]
# A node's values that make its kind of change.
CONTRACT = ("contract", "constraints", "primary_key")
# What sqlrun decided, beside declared settings: it may change with sqlrun's version.
OWN, STRATEGY = "sqlrun", "incremental_strategy"


def states(new: Values, old: Values) -> Marks:
    """Return the nodes of each `state:`, by the manifests of the project now and before.

    Names of schemas are left out, because an environment has its own.

    Raises: KeyError, TypeError or AttributeError if a manifest has another form.
    """
    marks: Marks = {}
    changed, former = _changed_tests(new, old), dict(_tables(old))
    for unique_id, node in _tables(new):
        name, before = _name(node), former.get(unique_id)
        found = ["new", "modified"] if before is None else ["old"]
        if before is not None:
            kinds = list(_kinds(node, before))
            found += [f"modified.{kind}" for kind in kinds]
            found.append("modified" if kinds or unique_id in changed else "unmodified")
        for one in found:
            marks.setdefault(f"state:{one}", set()).add(name)
    return marks | {"state:": set()}


def results(document: Values, manifest: Values) -> Marks:
    """Return the nodes of each `result:` of a run; that of a check or a unit test counts for its model."""
    marks: Marks = {"result:": set()}
    tables = dict(_tables(manifest))
    for one in document["results"]:
        for unique_id in _tested(one["unique_id"], manifest):
            if unique_id in tables:
                marks.setdefault(f"result:{one['status']}", set()).add(_name(tables[unique_id]))
    return marks


def source_statuses(new: Values, old: Values, manifest: Values) -> Marks:
    """Return the sources of each `source_status:`, by their ages now and before; `fresher` ones have a newer event."""
    marks: Marks = {"source_status:": set()}
    before = {one["unique_id"]: one.get("max_loaded_at") or "" for one in old["results"]}
    for one in new["results"]:
        if (node := manifest["sources"].get(one["unique_id"])) is None:
            continue
        marks.setdefault(f"source_status:{one['status']}", set()).add(_name(node))
        if (one.get("max_loaded_at") or "") > before.get(one["unique_id"], ""):
            marks.setdefault("source_status:fresher", set()).add(_name(node))
    return marks


def _tables(manifest: Values) -> Iterator[tuple[str, Values]]:
    yield from ((key, node) for key, node in manifest["nodes"].items() if node["resource_type"] in ("model", "seed"))
    yield from manifest["sources"].items()


def _name(node: Values) -> str:
    """Return the name of a node in the graph."""
    is_source = node["resource_type"] == "source"
    return f"source:{node['source_name']}.{node['name']}" if is_source else str(node["name"])


def _kinds(node: Values, before: Values) -> Iterator[str]:
    """Yield the kinds of changes of a node that was there before."""
    if node["resource_type"] == "source":
        if any(node[key] != before.get(key) for key in ("columns", "external", "loader")):
            yield "body"
        if node["freshness"] != before.get("freshness"):
            yield "configs"
        return
    if node["checksum"] != before["checksum"]:
        yield "body"
    # The same text that means another query: a macro, a var or a variable of the environment has changed.
    elif _compiled(node) != _compiled(before):
        yield "macros"
    if _config(node) != _config(before):
        yield "configs"
    if _contract(node) != _contract(before):
        yield "contract"
    if node["config"].get("alias") != before["config"].get("alias"):
        yield "relation"


def _compiled(node: Values) -> str:
    """Return the compiled query of a model without the name of its schema."""
    return str(node.get("compiled_code") or "").replace(f"`.`{node['schema']}`.`", "`.`")


def _config(node: Values) -> Values:
    config = {key: value for key, value in node["config"].items() if key != "alias"}
    meta = config.get("meta") or {}
    own = meta.get(OWN) or {}
    declared = {key: own.get(key) for key in ("at_worst", "materialized")}
    return config | {"meta": {key: value for key, value in meta.items() if key != OWN}, OWN: declared, STRATEGY: None}


def _contract(node: Values) -> tuple[Any, ...]:
    columns = [(name, one["data_type"], one.get("constraints")) for name, one in node["columns"].items()]
    return (*(node.get(key) for key in CONTRACT), columns)


def _changed_tests(new: Values, old: Values) -> set[str]:
    """Return the ids of the nodes with a check or a unit test that is new or has changed."""
    changed = set()
    for unique_id, node in new["nodes"].items():
        if node["resource_type"] == "test" and _test(node) != _test(old["nodes"].get(unique_id, {})):
            changed |= set(_tested(unique_id, new))
    for unique_id, node in new["unit_tests"].items():
        before = old["unit_tests"].get(unique_id, {})
        if any(node[key] != before.get(key) for key in ("given", "expect", "overrides", "config")):
            changed |= set(_tested(unique_id, new))
    return changed


def _test(node: Values) -> tuple[Any, ...]:
    return (node.get("raw_code"), node.get("test_metadata"), (node.get("config") or {}).get("severity"))


def _tested(unique_id: str, manifest: Values) -> Iterable[str]:
    """Return the ids of the table that a check or a unit test is of; that of a table itself."""
    node = manifest["nodes"].get(unique_id) or manifest["unit_tests"].get(unique_id)
    if node is None or node["resource_type"] not in ("test", "unit_test"):
        return (unique_id,)
    attached = node.get("attached_node")
    return (attached,) if attached else tuple(node["depends_on"]["nodes"][:1])
