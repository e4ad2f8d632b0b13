"""Unit tests of models parsed from YAML, validated against the contracts that they name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlrun.errors import Place
from sqlrun.incremental.landing import query as landing_query
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed, plain
from sqlrun.project import Given, Row, UnitTest
from sqlrun.test_definitions.declared_rows import FORMATS, content
from sqlrun.test_definitions.declared_steps import expected, known_input, steps, time_of
from sqlrun.test_definitions.names import Input, Known, no_lines
from sqlrun.test_definitions.passages import Table

TEST_KEYS = (
    "name", "model", "description", "config", "tags", "as_of", "overrides", "cte", "given", "expect", "then",
)  # fmt: skip
GIVEN_KEYS = ("input", "format", "rows", "fixture")
# dbt's keys that sqlrun doesn't support, with the advice to print.
OTHERWISE = {
    "versions": "Remove it: sqlrun has no model versions.",
    "env_vars": "Use `vars`. Templates can't read environment variables.",
    "is_incremental": "Remove it: is_incremental() isn't supported. Test several ticks with `then:`.",
}


def unit_tests(reader: Reader, known: Known) -> tuple[UnitTest, ...]:
    """Return the tests under `unit_tests:`, in dbt's form with `then:`; disabled tests are left out."""
    found: list[UnitTest] = []
    if not isinstance(reader.root, Mapping):
        return ()
    for item, place in reader.items(reader.root, "unit_tests", "the file"):
        if isinstance(item, Mapping) and reader.text(item, "model") in known.disabled:
            continue
        item = mapping(reader, item, place, "a unit test", TEST_KEYS, ("name", "model"))
        test = _unit_test(reader, item, place, known)
        if enabled(reader, item):
            found.append(test)
    return tuple(found)


def mapping(reader: Reader, node: Any, where: Place, what: str, keys: tuple[str, ...], needed: tuple[str, ...]) -> Any:
    """Return a mapping after a check of its keys; dbt's unsupported keys are reported with their reason."""
    for key in node if isinstance(node, Mapping) else ():
        if key in OTHERWISE and key not in keys:
            reader.problem("SR121", reader.place(node, key), f"unsupported key `{key}` of {what}", OTHERWISE[key])
            keys = (*keys, key)
    return reader.mapping(node, where, what, keys, needed)


def enabled(reader: Reader, item: Any) -> bool:
    """Return the value of `config: {enabled: ...}`, True by default."""
    return reader.flag(config(reader, item), "enabled", True)


def config(reader: Reader, item: Any) -> Any:
    """Return the mapping under `config`."""
    node = item.get("config")
    return node if isinstance(node, Mapping) else {}


def tags(reader: Reader, item: Any) -> tuple[str, ...]:
    """Return the tags of a test, also those under `config`."""
    if item.get("config") is not None:
        reader.mapping(item["config"], reader.value_place(item, "config"), "`config`", ("tags", "enabled", "meta"))
    return tuple(dict.fromkeys((*reader.texts(item, "tags"), *reader.texts(config(reader, item), "tags"))))


def _unit_test(reader: Reader, item: Any, place: Place, known: Known) -> UnitTest:
    name, model = reader.text(item, "name"), reader.text(item, "model")
    if model and model not in known.models:
        hint = f"Models: {listed(sorted(known.models))}.{did_you_mean(model, known.models)}"
        reader.problem("SR112", reader.value_place(item, "model"), f"unknown model `{model}`", hint)
    if item and item.get("expect") is None and item.get("then") is None:
        reader.problem("SR104", place, "a unit test lacks `expect`", "Add `expect:` with the expected rows.")
    values, macros = overrides(reader, item, known)
    cte, as_of = reader.text(item, "cte"), time_of(reader, item)
    noun = known.inputs.get(f"ref('{model}')", Input("model", ()))
    # The columns of a CTE are known only after its model's query is parsed.
    table = Table(f"the CTE `{cte}`", {}) if cte else Table.of(f"ref('{model}')", noun.columns)
    quarantine_columns = quarantine(model, noun)
    return UnitTest(
        name=name,
        model=model,
        given=_given(reader, item, known),
        expect=expected(reader, item, table, quarantine_columns, known, step=False),
        place=place,
        description=reader.text(item, "description"),
        as_of=as_of,
        vars=values,
        macros=macros,
        cte=cte,
        tags=tags(reader, item),
        steps=steps(reader, item, as_of, known, table, quarantine_columns),
    )


def quarantine(model: str, noun: Input) -> Table:
    """Return the columns of the lines that a landing model quarantines."""
    if not noun.columns:
        return Table(f"{model}__quarantine", {})
    hidden = {landing_query.REASON: "string", landing_query.RAW: "string"}
    return Table(f"{model}__quarantine", hidden | {column.name: column.type for column in noun.columns})


def overrides(reader: Reader, item: Any, known: Known) -> tuple[Row, Row]:
    """Return the overridden vars, and the overridden results of macros."""
    node = item.get("overrides")
    if node is None:
        return {}, {}
    node = mapping(reader, node, reader.value_place(item, "overrides"), "`overrides`", ("vars", "macros"), ())
    values, macros = _values(reader, node, "vars"), _values(reader, node, "macros")
    for name in values:
        if name not in known.vars:
            hint = f"Vars: {listed(sorted(known.vars))}.{did_you_mean(name, known.vars)}"
            reader.problem(
                "SR112", reader.place(node["vars"], name), f"unused var `{name}`: no template reads it", hint
            )
    for name, value in macros.items():
        at = reader.place(node["macros"], name)
        if name in OTHERWISE:
            reader.problem("SR121", at, f"unsupported override of `{name}`", OTHERWISE[name])
        elif name not in known.macros:
            hint = f"Macros: {listed(sorted(known.macros))}.{did_you_mean(name, known.macros)}"
            reader.problem("SR112", at, f"unknown macro `{name}`", hint)
        elif isinstance(value, Mapping | list) or value is None:
            hint = f'Write the SQL that each call returns: {name}: "..."'
            reader.problem(
                "SR103",
                reader.value_place(node["macros"], name),
                "an override of a macro must be a string or a number",
                hint,
            )
    return values, macros


def _values(reader: Reader, node: Any, key: str) -> Row:
    values = node.get(key)
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        hint = f"{key}: {{a: 1}}"
        reader.problem("SR103", reader.value_place(node, key), f"`{key}` must be a mapping", hint)
        return {}
    found: Row = plain(values)
    return found


def _given(reader: Reader, item: Any, known: Known) -> tuple[Given, ...]:
    found: list[Given] = []
    for one, place in reader.items(item, "given", "a unit test"):
        one = reader.mapping(one, place, "an input of a unit test", GIVEN_KEYS, ("input",))
        name = known_input(reader, one, known.inputs, {other.input for other in found})
        noun = known.inputs.get(name, Input("model", ()))
        is_source = noun.kind == "source"
        if one.get("format") == "lines" and not is_source:
            hint = "Use rows. Only sources have raw lines."
            reader.problem(
                "SR121", reader.value_place(one, "format"), f"`lines` for {name}, which is {no_lines(noun)}", hint
            )
        made = content(reader, one, Table.of(name, noun.columns), known, (*FORMATS, "lines"))
        if made.rows is None and not made.sql and made.lines is None and noun.kind != "seed" and name in known.inputs:
            hint = "Add `rows:`, or `rows: []` for an empty input."
            reader.problem("SR104", place, "an input of a unit test lacks `rows`", hint)
        rows = noun.rows if made.rows is None and noun.kind == "seed" else made.rows or ()
        found.append(Given(name, rows, place, made.sql, made.lines))
    return tuple(found)
