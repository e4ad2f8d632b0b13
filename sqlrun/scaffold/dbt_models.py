"""dbt's queries as sqlrun's: settings in config(), blocks of is_incremental(), and views that checks read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlrun.load.contract import CONFIG_KEYS
from sqlrun.scaffold import dbt_contracts, dbt_jinja, dbt_tests
from sqlrun.scaffold.dbt_jinja import READ
from sqlrun.scaffold.dbt_types import TYPES
from sqlrun.scaffold.imported import Import


def convert(made: Import) -> None:
    """Rewrite refs, sources and settings of all queries; a model that isn't enabled is left out."""
    for path, text in list(made.queries.items()):
        name = path.rpartition("/")[2].removesuffix(".sql")
        text = dbt_jinja.rewritten(text, made.packages, made.source)
        text, blocks = dbt_jinja.without_incremental(text)
        if blocks:
            made.notes.append(
                f"models/{path}: the blocks of is_incremental() were deleted. The query reads its whole history, and "
                "sqlrun updates the table by what changed"
            )
        call = dbt_jinja.config_call(text)
        if call is not None:
            kept = [found for pair in call.arguments if (found := _setting(*pair, path, name, made)) is not None]
            text = dbt_jinja.with_config(text, call, kept)
        made.queries[path] = text
        entry = made.entries.get(name, {})
        values = dict(call.arguments) if call is not None else {}
        enabled = dbt_jinja.value_of(values["enabled"]) if "enabled" in values else None
        if enabled is False or (enabled is None and (entry.get("config") or {}).get("enabled") is False):
            made.disabled.add(name)


def _setting(key: str, value: str, path: str, name: str, made: Import) -> tuple[str, str] | None:
    """Return a setting of a query as sqlrun has it; None for one that is left out."""
    where, plain = f"models/{path}", dbt_jinja.value_of(value)
    if key == "materialized" and isinstance(plain, str):
        return key, f"'{dbt_contracts.stored(plain, where, made.notes)}'"
    if key == "unique_key":
        if grain := dbt_contracts.names_of(plain):
            made.entry(name).setdefault("grain", grain)
            made.notes.append(f"{where}: `unique_key` is `grain`: {', '.join(grain)}")
        else:
            made.notes.append(f"{where}: `unique_key` was left out. Write the columns as `grain` of a contract")
        return None
    if key in CONFIG_KEYS and not (key == "partition_by" and isinstance(plain, dict)):
        return key, value
    made.notes.append(f"{where}: `{key}` of config() was left out")
    return None


def leave_out_types(made: Import, layers: Mapping[str, Mapping[str, Any]]) -> None:
    """Leave out the types of columns where no contract is enforced: there dbt only shows them, and may lack some."""
    if any((layer.get("contract") or {}).get("enforced") for layer in layers.values()):
        made.enforced |= set(made.models)
        return
    for name, entry in made.entries.items():
        call = dbt_jinja.config_call(made.queries.get(made.models.get(name, ""), ""))
        in_query = dbt_jinja.value_of(dict(call.arguments).get("contract", "none")) if call is not None else None
        contract = in_query or (entry.get("config") or {}).get("contract") or {}
        columns = [column for column in entry.get("columns", ()) if "data_type" in column]
        for column in columns:
            kind = str(column["data_type"])
            column["data_type"] = TYPES.get(kind.lower(), kind)
            if isinstance(contract, Mapping) and contract.get("enforced"):
                made.enforced.add(name)
            else:
                made.types[name, column["name"]] = column.pop("data_type")


def below(queries: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the models that depend on each model, on others of them included."""
    parents = {
        path.rpartition("/")[2].removesuffix(".sql"): {name for _, name in READ.findall(text)}
        for path, text in queries.items()
    }
    found: dict[str, frozenset[str]] = {}
    for name in parents:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            above = waiting.pop()
            for child, read in parents.items():
                if above in read and child not in seen:
                    seen.add(child)
                    waiting.append(child)
        found[name] = frozenset(seen)
    return found


def add_tests(made: Import) -> None:
    """Write each test that a contract can't have as a SQL check of its model, or as a table of wrong rows."""
    uses = [use for found in made.converted.values() for use in found.uses] + made.uses
    queries = [query for use in uses if (query := dbt_tests.query_of(use, made.library, made.notes)) is not None]
    models, names = made.models, set(made.models) | set(made.seeds)
    taken: set[str] = set()
    for query in (*queries, *made.singular):
        if query.reads & made.disabled:
            made.notes.append(f"{query.where}: the test was left out: {min(query.reads & made.disabled)} isn't enabled")
            continue
        unknown = query.reads - names
        if unknown:
            made.notes.append(f"{query.where}: the test was left out: there is no table `{min(unknown)}`")
            continue
        for name, text, severity in dbt_tests.checks(query, made.notes):
            name = _free(name, taken | names)
            taken.add(name)
            only = min(query.reads) if len(query.reads) == 1 else ""
            if only in models:
                folder = models[only].rpartition("/")[0]
                path = "/".join(filter(None, ("expectations", folder, f"{name}.sql")))
                made.files[path] = dbt_tests.check_file(text, severity, query.description)
                made.converted.setdefault("_tests.yml", dbt_contracts.Converted()).tables.add(only)
            else:
                made.queries[f"tests/{name}.sql"] = dbt_tests.table_file(text, query.description)
                rows = f"select * from {{{{ ref('{name}') }}}}"
                made.files[f"expectations/tests/{name}.sql"] = dbt_tests.check_file(rows, severity, query.description)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no other table or check has.

    >>> _free("a", {"a", "a_2"})
    'a_3'
    """
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def store_views(made: Import, layers: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the views that checks read: a view has no rows of its own."""
    entries = made.entries
    wanted = set[str]().union(*(found.tables for found in made.converted.values()))
    for path, text in made.queries.items():
        parts = path.split("/")
        folders = ["/".join(parts[:depth]) for depth in range(len(parts))]
        kind = next(layers[f]["materialized"] for f in reversed(folders) if "materialized" in layers.get(f, {}))
        name = parts[-1].removesuffix(".sql")
        kind = (entries.get(name, {}).get("config") or {}).get("materialized", kind)
        call = dbt_jinja.config_call(text)
        arguments = dict(call.arguments) if call is not None else {}
        kind = dbt_jinja.value_of(arguments.get("materialized", repr(kind))) or kind
        if kind != "view" or name not in wanted:
            continue
        made.notes.append(f"models/{path}: stored as a table, because its tests read stored rows")
        if "materialized" in arguments or name not in entries:
            arguments["materialized"] = "'table'"
            made.queries[path] = dbt_jinja.with_config(text, call, list(arguments.items()))
        else:
            entries[name].setdefault("config", {})["materialized"] = "table"
