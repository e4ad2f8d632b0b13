"""Every key of a contract, a source or a seed, on every kind of node: a violation is noticed, or the key is refused.

`ROWS` has one line for each key of each kind; a key that is added anywhere without a line here fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sqlrun.artifacts.manifest import manifest
from sqlrun.artifacts.nodes import Naming
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.graph.selectors import select
from sqlrun.load import constraints, contract, load, profile, sources
from sqlrun.pipeline import prepare
from sqlrun.project import Profile
from tests.support import broken
from tests.support.projects import Site
from tests.support.script import START

TYPES = {"id": "string", "n": "int", "at": "timestamp"}
QUERIES = {
    "landing": "select id, n, at from {{ source('shop', 'sold') }}",
    "table": (
        "select id, n, at from {{ ref('landing') }}\n"
        "qualify row_number() over (partition by id order by n desc, at desc) = 1"
    ),
    "view": "select id, n, at from {{ ref('table') }}",
}
LINES = ({"id": "a", "n": 1, "at": "2026-01-01T00:00:00Z"}, {"id": "b", "n": 2, "at": "2026-01-01T00:00:00Z"})
CONSTRAINTS = ("not_null", "unique", "primary_key", *constraints.ARGUMENTS["constraints"])
TESTS = ("not_null", "unique", *constraints.ARGUMENTS["data_tests"])
COLUMN = (
    *(key for key in contract.COLUMN_KEYS if key not in constraints.ARGUMENTS),
    *(f"constraints:{word}" for word in CONSTRAINTS),
    *(f"data_tests:{word}" for word in TESTS),
)
MODEL = (
    *(key for key in contract.MODEL_KEYS if key not in ("config", "columns")),
    *(f"config:{key}" for key in contract.CONFIG_KEYS),
    *(f"column:{key}" for key in COLUMN),
)
KEYS: Mapping[str, Iterable[str]] = {
    **dict.fromkeys(QUERIES, MODEL),
    "seed": (*(k for k in contract.SEED_KEYS if k != "columns"), *(f"column:{key}" for key in COLUMN)),
    "source": (
        *(k for k in sources.SOURCE_KEYS if k != "columns"),
        *(f"column:{key}" for key in (*COLUMN, sources.INSIDE)),
    ),
}
# Texts for people, which rows can't contradict.
WORDS = ("description", "column:description", "column:unit")
Node = dict[str, Any]
ENGINE = DuckDBEngine()


def column(node: Node, name: str) -> Node:
    found: Node = next(one for one in node["columns"] if one["name"] == name)
    return found


@dataclass(frozen=True)
class Case:
    """A text, the lines that land, and the expected result: a code, or a function of the tick."""

    write: Callable[[Node], object]
    seen: str | Callable[[Site, Any], object]
    lines: tuple[Mapping[str, object], ...] = LINES
    rows: str = "a,1,2026-01-01\nb,2,2026-01-01\n"


def setting(**values: object) -> Callable[[Node], object]:
    return lambda node: node.update(values)


def config(**values: object) -> Callable[[Node], object]:
    return lambda node: node.setdefault("config", {}).update(values)


def of_column(name: str, /, **values: object) -> Callable[[Node], object]:
    return lambda node: column(node, name).update(values)


def said(key: str, word: str, name: str = "n") -> Callable[[Node], object]:
    """Return the edit that adds a constraint or a data test to a column, with its arguments."""
    needs: Mapping[str, Node] = {
        "foreign_key": {"to": "ref('names')", "to_columns": [name]},
        "relationships": {"to": "ref('names')", "field": name},
        "accepted_values": {"values": [1]},
    }
    more = needs.get(word, {})
    if key == "constraints":
        entry: object = {"type": word, **more}
    else:
        entry = {word: more} if more else word
    return of_column(name, **{key: [entry]})


def both(*writes: Callable[[Node], object]) -> Callable[[Node], object]:
    return lambda node: [write(node) for write in writes]


def fails(kind: str, *models: str) -> Callable[[Site, Any], object]:
    """A check of this kind fails, and the tick isn't published."""

    def seen(site: Site, result: Any) -> object:
        found = [check for check in result.checks if kind in check.type and check.status == "fail"]
        return found and not result.published and {check.model for check in found} <= set(models)

    return seen


def warns(kind: str) -> Callable[[Site, Any], object]:
    """A check of this kind fails and is reported."""
    return lambda site, result: result.published and [c.status for c in result.checks if c.type == kind] == ["warn"]


def quarantined(site: Site, result: Any) -> object:
    return [node.quarantined for node in result.nodes if node.name == "landing"] == [1]


def refused_in_a_tick(site: Site, result: Any) -> object:
    return not result.published and any("SR602" in node.message for node in result.nodes)


def spec(name: str) -> Callable[[Site, Any], object]:
    return lambda site, result: site.published[-1].plan.tables[name].spec.partition_by == ("n",)


def tagged(name: str) -> Callable[[Site, Any], object]:
    return lambda site, result: select(site.prepared.graph, ("tag:hot",)) == (name,)


def measured(name: str) -> Callable[[Site, Any], object]:
    return lambda site, result: any(m.subject == name and m.measure.startswith("freshness") for m in result.measures)


def stale(name: str) -> Callable[[Site, Any], object]:
    return lambda site, result: (
        [c.model for c in result.checks if c.type == "freshness" and c.status == "fail"] == [name]
    )


def evaluator(name: str) -> Callable[[Site, Any], object]:
    return lambda site, result: {c.evaluator for c in result.checks if c.model == name} == {"great_expectations"}


def always(site: Site, result: Any) -> object:
    """It can't be violated: such a node has no other storage."""
    return result.published


def in_manifest(name: str, *path: str) -> Callable[[Site, Any], object]:
    """The word changes no result, and the manifest has it."""

    def shown(site: Site, result: Any) -> bool:
        project = site.prepared.project
        naming = Naming(project, "s", "spark", frozenset(seed.name for seed in project.seeds))
        made = manifest(site.prepared.workspace, naming, START, "a")
        value: Any = next(node for key, node in made["nodes"].items() if key.endswith(f".{name}"))
        for key in path:
            value = value[key]
        return bool(result.published) and value == "marked"

    return shown


def gone(name: str) -> Callable[[Site, Any], object]:
    """The model is no part of the project."""
    return lambda site, result: site.prepared.project.disabled == (name,) and name not in {n.name for n in result.nodes}


def words(name: str) -> dict[str, Case]:
    """Return the cases of words for people and tools."""
    return {
        "meta": Case(setting(meta={"a": "marked"}), in_manifest(name, "meta", "a")),
        "docs": Case(setting(docs={"node_color": "marked"}), in_manifest(name, "docs", "node_color")),
        "group": Case(setting(group="marked"), in_manifest(name, "group")),
        "access": Case(setting(access="nobody"), "SR110"),
        "config:meta": Case(config(meta={"a": "marked"}), in_manifest(name, "config", "meta", "a")),
        "config:docs": Case(config(docs={"node_color": "marked"}), in_manifest(name, "config", "docs", "node_color")),
        "config:group": Case(config(group="marked"), in_manifest(name, "config", "group")),
        "config:access": Case(config(access="nobody"), "SR110"),
        "config:alias": Case(config(alias="marked"), in_manifest(name, "config", "alias")),
        "column:meta": Case(of_column("n", meta={"a": "marked"}), in_manifest(name, "columns", "n", "meta", "a")),
    }


def plain(name: str) -> Callable[[Site, Any], object]:
    """The table's files may have no deletion vectors: readers of Delta's first version open it."""

    def opens(site: Site, result: Any) -> bool:
        published = site.ledger.read().published
        assert published is not None
        return DeltaTable(f"{site.warehouse}/{published.tables[name].path}").to_pyarrow_table().num_rows > 0

    return opens


def elsewhere(file: str) -> Callable[[Site, Any], object]:
    """It takes more than a tick to violate it, which another test file does."""
    text = (Path(__file__).parents[1] / file).read_text()
    return lambda site, result: "max_read_amplification" in text or "anomalies" in text


TWICE = (*LINES, {"id": "c", "n": 2, "at": "2026-01-01T00:00:00Z"})
OLD = {"event_time": "at", "freshness": {"error_after": "1 hour"}}


def kept(name: str) -> dict[str, Case]:
    """Return the cases of a stored table, landed or queried."""
    lands = name == "landing"
    key = "id" if lands else "n"
    unique = fails("unique", name)
    same = (*LINES, {"id": "b", "n": 3, "at": "2026-01-01T00:00:00Z"}) if lands else TWICE
    missing = (*LINES, {"id": "c", "n": 3})

    def nulls(write: Callable[[Node], object]) -> Case:
        return Case(write, quarantined if lands else fails("not_be_null", "table"), missing)

    return {
        **words(name),
        "config:enabled": Case(config(enabled=False), "SR202"),
        "name": Case(setting(name="another"), "SR105"),
        "grain": Case(setting(grain=[key]), unique, lines=same),
        "repeats": Case(setting(grain=["id"], repeats=True), warns("repeats") if lands else "SR110", same),
        "event_time": Case(setting(event_time="at"), measured(name)),
        "freshness": Case(setting(**OLD), stale(name)),
        "config:materialized": Case(config(materialized="view"), "SR715" if lands else always),
        "config:partition_by": Case(config(partition_by=["n"]), spec(name)),
        "config:at_worst": Case(config(at_worst="append"), always if lands else "SR530"),
        "config:tags": Case(config(tags=["hot"]), tagged(name)),
        "config:max_read_amplification": Case(config(max_read_amplification=1), elsewhere("plan/test_costs.py")),
        "config:contract": Case(both(config(contract={"enforced": True}), of_column("n", data_type="bigint")), "SR311"),
        "config:readable_by": Case(config(readable_by="pandas"), plain(name)),
        "config:updated_at": Case(config(updated_at="at"), "SR556"),
        "config:check_cols": Case(config(check_cols=["n"]), "SR556"),
        "config:hard_deletes": Case(config(hard_deletes="ignore"), "SR556"),
        "config:anomalies": Case(config(anomalies=False), elsewhere("check/test_measuring.py")),
        "config:checks": Case(both(setting(grain=["id"]), config(checks="great_expectations")), evaluator(name)),
        "column:name": Case(of_column("n", name="m"), "SR306"),
        "column:data_type": Case(of_column("n", data_type="nonsense"), "SR309"),
        "column:nulls": nulls(of_column("at", nulls=False)),
        "column:tags": Case(
            both(of_column("n", tags=["pii"]), said("data_tests", "accepted_values")),
            lambda site, result: [c.samples for c in result.checks if c.unexpected] == [("n=***",)],
        ),
        "column:constraints:not_null": nulls(said("constraints", "not_null", "at")),
        "column:constraints:unique": Case(both(setting(grain=[key]), said("constraints", "unique", key)), unique, same),
        "column:constraints:primary_key": Case(
            both(setting(grain=[key]), said("constraints", "primary_key", key)), unique, same
        ),
        "column:constraints:foreign_key": Case(said("constraints", "foreign_key"), fails("relationships", name), TWICE),
        "column:data_tests:not_null": nulls(said("data_tests", "not_null", "at")),
        "column:data_tests:unique": Case(both(setting(grain=[key]), said("data_tests", "unique", key)), unique, same),
        "column:data_tests:accepted_values": Case(said("data_tests", "accepted_values"), fails("be_in_set", name)),
        "column:data_tests:relationships": Case(
            said("data_tests", "relationships"), fails("relationships", name), TWICE
        ),
    }


def of_view() -> dict[str, Case]:
    """Return the cases of a view, which stores nothing: keys that need rows are refused."""
    made = {key: Case(case.write, "SR715") for key, case in kept("table").items()}
    made |= {key: kept("table")[key] for key in ("name", "config:contract", "column:name", "column:data_type")}
    made["config:materialized"] = Case(config(materialized="view"), always)
    made["config:tags"] = Case(config(tags=["hot"]), tagged("view"))
    made["column:tags"] = Case(of_column("n", tags=["pii"]), always)
    made["config:enabled"] = Case(config(enabled=False), gone("view"))
    return made | words("view")


def of_seed() -> dict[str, Case]:
    """Return the cases of a seed, whose rows are read before anything is built."""
    empty, again = "a,1,2026-01-01\nb,,2026-01-01\n", "a,1,2026-01-01\nb,01,2026-01-01\n"
    grain = setting(grain=["n"])
    keyed = {f"column:{k}": Case(both(grain, said(*k.split(":"))), "SR113", rows=again) for k in UNIQUE}
    none = {f"column:{k}": Case(said(*k.split(":")), "SR113", rows=empty) for k in NOT_NULL}
    return (
        keyed
        | none
        | {
            "name": Case(setting(name="another"), "SR105"),
            "grain": Case(grain, "SR113", rows=again),
            "column:name": Case(of_column("n", name="m"), "SR113"),
            "column:data_type": Case(of_column("id", data_type="int"), "SR113"),
            "column:nulls": Case(of_column("n", nulls=False), "SR113", rows=empty),
            "column:tags": Case(of_column("n", tags=["pii"]), always),
            "meta": Case(setting(meta={"a": "marked"}), in_manifest("seed", "meta", "a")),
            "column:meta": Case(of_column("n", meta={"a": "marked"}), in_manifest("seed", "columns", "n", "meta", "a")),
            "column:constraints:foreign_key": Case(said("constraints", "foreign_key"), "SR110"),
            "column:data_tests:accepted_values": Case(said("data_tests", "accepted_values"), "SR110"),
            "column:data_tests:relationships": Case(said("data_tests", "relationships"), "SR110"),
        }
    )


def of_source() -> dict[str, Case]:
    """Return the cases of a source, whose lines are validated as they land."""
    missing = (*LINES, {"id": "c", "at": "2026-01-01T00:00:00Z"})
    refused = {f"column:{k}": Case(said(*k.split(":")), "SR110") for k in (*UNIQUE, *OTHERS)}
    judged = {f"column:{k}": Case(said(*k.split(":")), quarantined, missing) for k in NOT_NULL}
    return (
        refused
        | judged
        | {
            "name": Case(setting(name="another"), "SR203"),
            "format": Case(setting(format="xml"), "SR110"),
            **{key: Case(setting(**{key: 1}), "SR102") for key in sources.OF_FORMAT["kafka"]},
            "path": Case(setting(path="data/nowhere"), "SR120"),
            "on_schema_change": Case(setting(on_schema_change="fail"), refused_in_a_tick, ({**LINES[0], "more": 1},)),
            "drop_where": Case(setting(drop_where=[{"where": "nope = 1", "reason": "r"}]), "SR304"),
            "dead_letters": Case(setting(dead_letters={"path": "data/orders/dead"}), "SR754"),
            "cdc": Case(setting(cdc={"format": "debezium", "key": ["nope"]}), "SR110"),
            "files": Case(setting(files="../*.json"), "SR110"),
            "csv": Case(setting(csv={"header": False}), "SR102"),
            "document": Case(setting(document="list"), "SR110"),
            "max_document": Case(setting(max_document="1 byte"), "SR110"),
            "if_unreadable": Case(setting(if_unreadable="skip"), always),
            "column:name": Case(of_column("n", name="m"), "SR304"),
            "column:data_type": Case(
                of_column("id", data_type="int"), lambda site, result: result.nodes[2].quarantined == 2
            ),
            "column:nulls": Case(of_column("n", nulls=False), quarantined, missing),
            "column:meta": Case(of_column("n", meta=[1]), "SR103"),
            "column:nulls_inside": Case(of_column("n", nulls_inside=True), "SR102"),
            "column:tags": Case(of_column("n", tags=["pii"]), always),
        }
    )


UNIQUE = ("constraints:unique", "constraints:primary_key", "data_tests:unique")
NOT_NULL = ("constraints:not_null", "data_tests:not_null")
OTHERS = ("constraints:foreign_key", "data_tests:accepted_values", "data_tests:relationships")
ROWS: Mapping[str, dict[str, Case]] = {
    "landing": kept("landing"),
    "table": kept("table"),
    "view": of_view(),
    "seed": of_seed(),
    "source": of_source(),
}


def write(root: Path, kind: str, case: Case) -> Path:
    """Write a project with one node of each kind, and the case's text in one of them."""
    made: Node = {"name": "", "description": "A row.", "columns": []}
    made["columns"] = [{"name": n, "data_type": t, "description": "It."} for n, t in TYPES.items()]
    nodes = {name: {**deepcopy(made), "name": name} for name in (*QUERIES, "seed", "source")}
    nodes["view"]["config"] = {"materialized": "view"}
    nodes["source"] |= {"name": "sold", "path": "data/orders", "format": "json"}
    case.write(nodes[kind])
    files = {f"models/{name}.sql": text + "\n" for name, text in QUERIES.items()}
    files |= {f"models/{name}.yml": json.dumps({"models": [nodes[name]]}) for name in QUERIES}
    files["models/_sources.yml"] = json.dumps({"sources": [{"name": "shop", "tables": [nodes["source"]]}]})
    names = {**deepcopy(made), "name": "names"}
    files |= {
        f"seeds/{name}.yml": json.dumps({"seeds": [node]}) for name, node in (("names", names), ("seed", nodes["seed"]))
    }
    files |= {"seeds/names.csv": "id,n,at\na,1,2026-01-01\n", "seeds/seed.csv": "id,n,at\n" + case.rows}
    (root / "data" / "orders").mkdir(parents=True)
    return broken.write(root, files)


@pytest.mark.parametrize("kind", ROWS)
def test_each_key_of_each_kind_has_a_case(kind: str) -> None:
    assert {*ROWS[kind]} == {*KEYS[kind]} - {*WORDS}


CASES = [pytest.param(kind, key, id=f"{kind}-{key}") for kind, rows in ROWS.items() for key in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "key"), CASES)
def test_a_violation_is_noticed_or_the_key_is_refused(tmp_path: Path, kind: str, key: str) -> None:
    case = ROWS[kind][key]
    root = write(tmp_path / "p", kind, case)
    if isinstance(case.seen, str):
        with pytest.raises(ProjectError) as caught:
            prepared = prepare(root)
            raise ProjectError(load.missing_sources(prepared.project))
        assert case.seen in {problem.code for problem in caught.value.problems}
        assert all(problem.place.file for problem in caught.value.problems)
        return
    site = Site(root, ENGINE)
    (root / "data" / "orders" / "1.json").write_text("".join(json.dumps(line) + "\n" for line in case.lines))
    result = site.tick(START)
    assert case.seen(site, result), (result.nodes, result.checks)


# Keys of a profile, and their effects.
PROFILE: Mapping[str, tuple[object, Callable[[Profile], object]]] = {
    "engine": ("duckdb", lambda made: made.engine == "duckdb"),
    "warehouse": ("other", lambda made: made.warehouse.endswith("other")),
    "threads": (3, lambda made: made.threads == 3),
    "settings": ({"memory_limit": "1GB"}, lambda made: made.settings == {"memory_limit": "1GB"}),
    "vacuum_every": (7, lambda made: made.vacuum_every == 7),
    "keep_ticks": (8, lambda made: made.keep_ticks == 8),
    "check_timeout": (9, lambda made: made.check_timeout == 9),
    "statement_timeout": (11, lambda made: made.statement_timeout == 11),
    "stop_grace": (12, lambda made: made.stop_grace == 12),
    "current_folders": ("true", lambda made: made.current_folders),
    "delta_writer": ("library", lambda made: made.delta_writer == "library"),
    "connections": ({"k": {"bootstrap": "a:1"}}, lambda made: made.connections["k"].bootstrap == "a:1"),
    "storage": ({"region": "a"}, lambda made: False),
    "alerts": ({"webhook": "https://a.b", "command": ["c"], "timeout": 5}, lambda made: made.alerts.timeout == 5),
    "landing": ("duckdb", lambda made: False),
    "catalog": ("spark_catalog", lambda made: False),
}
ONLY_WITH = {
    "landing": ("SR131", {"engine": "auto"}),
    "catalog": ("SR131", {"engine": "spark", "settings": {"spark.sql.catalogImplementation": "hive"}}),
    "storage": ("SR790", {"warehouse": "s3://a/b"}),
}


@pytest.mark.parametrize("key", profile.KEYS)
def test_each_key_of_a_profile_is_read_or_refused(tmp_path: Path, key: str) -> None:
    """`landing` has a meaning with `engine: auto` alone, `storage` with a URL alone."""
    value, seen = PROFILE[key]
    about = {"engine": "duckdb", "warehouse": "w", key: value}
    broken.write(tmp_path, {"profiles/p.yml": json.dumps(about)})
    if key in ONLY_WITH:
        code, needed = ONLY_WITH[key]
        with pytest.raises(ProjectError, match=code):
            profile.load(tmp_path, "p")
        broken.write(tmp_path, {"profiles/p.yml": json.dumps(about | needed)})
        assert getattr(profile.load(tmp_path, "p"), key) == value
    else:
        assert seen(profile.load(tmp_path, "p"))
