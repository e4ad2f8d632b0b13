"""The checks and the unit tests of a project as tests of dbt's manifest. Pure."""

from __future__ import annotations

from typing import Any

from sqlrun.artifacts import unique_ids
from sqlrun.artifacts.nodes import Naming, Values, refs
from sqlrun.expectations import relationships
from sqlrun.expectations.catalogue import QUERY
from sqlrun.expectations.values import identity
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.project import CRITICAL, Expectation, Expected, Given, Model, UnitTest

# Namespaces of dbt's packages for tests that aren't its own.
UTILS, EXPECTATIONS = "dbt_utils", "great_expectations"


def id_of(project: str, model: Model, one: Expectation, columns: tuple[str, ...]) -> str:
    """Return the id of a check, that of its result."""
    return unique_ids.test(project, model.name, one.result_type, columns, identity(model.name, one))


def check(naming: Naming, model: Model, one: Expectation, columns: tuple[str, ...]) -> Values:
    """Return the node of a check; `columns` are the names in its result.

    A SQL check is dbt's singular test, any other a generic one.
    """
    unique_id = id_of(naming.project.name, model, one, columns)
    name = unique_ids.test_name(model.name, one.result_type, columns, identity(model.name, one))
    raw = str(one.kwargs["unexpected_rows_query"]) if one.type == QUERY else _call(one)
    reads = [model.name, *([relationships.target(one)] if one.type == RELATIONSHIPS else [])]
    meta = {"sqlrun": {"severity": one.severity, "on_fail": one.on_fail, "place": str(one.place)}}
    node: Values = {
        **naming.common("test", name, one.place.file, unique_id),
        **naming.relational(name, "", raw),
        "config": {
            "enabled": True,
            "materialized": "test",
            "severity": "ERROR" if one.severity == CRITICAL else "WARN",
            "tags": [],
            "meta": meta,
        },
        "tags": [],
        "description": one.description,
        "columns": {},
        "meta": meta,
        "relation_name": None,
        "language": "sql",
        "refs": refs(reads),
        "sources": [],
        "metrics": [],
        "depends_on": {"macros": [], "nodes": [naming.id_of(read) for read in reads]},
        "compiled": False,
        "compiled_code": None,
        "contract": {"enforced": False, "alias_types": True},
    }
    if one.type == QUERY:
        return node
    return node | {
        "column_name": columns[0] if len(columns) == 1 else None,
        "file_key_name": f"models.{model.name}",
        "attached_node": naming.id_of(model.name),
        "test_metadata": _metadata(model, one),
    }


def _metadata(model: Model, one: Expectation) -> Values:
    """Return what kind of test a check is, with dbt's names of the arguments where dbt has the test."""
    kwargs = dict(one.kwargs)
    column = kwargs.pop("column", None)
    arguments: dict[str, Any] = {"column_name": column} if column is not None else {}
    arguments["model"] = f"{{{{ get_where_subquery(ref('{model.name}')) }}}}"
    namespace: str | None = None
    name = unique_ids.TESTS.get(one.type, one.type)
    match one.type:
        case "expect_column_values_to_not_be_null" | "expect_column_values_to_be_unique":
            arguments |= kwargs
        case "expect_column_values_to_be_in_set":
            arguments |= kwargs | {"values": kwargs["value_set"]}
            del arguments["value_set"]
        case "expect_compound_columns_to_be_unique":
            namespace = UTILS
            arguments |= {"combination_of_columns": kwargs["column_list"]}
        case _:
            namespace = None if one.type == RELATIONSHIPS else EXPECTATIONS
            if one.type == RELATIONSHIPS:
                kwargs["to"] = f"ref('{kwargs['to']}')"
            arguments |= kwargs
    return {"name": name, "kwargs": arguments, "namespace": namespace}


def _call(one: Expectation) -> str:
    """Return a check as a call of a test in Jinja."""
    return f"{{{{ test_{unique_ids.TESTS.get(one.type, one.type)}(**_dbt_generic_test_kwargs) }}}}"


def unit_test(naming: Naming, one: UnitTest) -> Values:
    """Return a unit test of a model. dbt has no word for a test's later ticks: their number is in `meta.sqlrun`."""
    meta = {"sqlrun": {"ticks": 1 + len(one.steps), "as_of": one.as_of}}
    return {
        **naming.common("unit_test", one.name, one.place.file, unique_ids.unit_test(naming.project.name, one)),
        "model": one.model,
        "description": one.description,
        "given": [_given(given) for given in one.given],
        "expect": _expected(one.expect),
        "overrides": {"macros": one.macros, "vars": one.vars, "env_vars": {}},
        "depends_on": {"macros": [], "nodes": [naming.id_of(one.model)]},
        "config": {"tags": list(one.tags), "meta": meta, "enabled": True},
        "schema": naming.schema,
    }


def _given(given: Given) -> Values:
    if given.sql:
        return {"input": given.input, "rows": given.sql, "format": "sql", "fixture": None}
    rows: list[Any] = list(given.rows)
    if given.lines is not None:
        rows = [{"line": line} for line in given.lines]
    return {"input": given.input, "rows": rows, "format": "dict", "fixture": None}


def _expected(expected: Expected) -> Values:
    if expected.sql:
        return {"rows": expected.sql, "format": "sql", "fixture": None}
    return {"rows": list(expected.rows or ()), "format": "dict", "fixture": None}
