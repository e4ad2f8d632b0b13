"""Unit tests of macros parsed from YAML: given rows, a SELECT that calls the macro, expected rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlrun.errors import Place, ProjectError
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed
from sqlrun.parse import parse
from sqlrun.project import Given, Model, Project, Row, UnitTest
from sqlrun.render import render
from sqlrun.test_definitions.declared import enabled, mapping, overrides, tags
from sqlrun.test_definitions.declared_rows import content, passage_of
from sqlrun.test_definitions.declared_steps import expected, time_of, types_of
from sqlrun.test_definitions.names import Known, input_name
from sqlrun.test_definitions.passages import Table
from sqlrun.test_definitions.queries import over_given, refuse_refs
from sqlrun.test_definitions.spark_rows import select_of
from sqlrun.test_definitions.sql_rows import shown

TEST_KEYS = (
    "name", "macro", "description", "config", "tags", "as_of", "overrides", "given", "sql", "expect",
)  # fmt: skip
GIVEN_KEYS = ("input", "columns", "format", "rows", "fixture")


def macro_tests(reader: Reader, known: Known, project: Project) -> tuple[UnitTest, ...]:
    """Return the tests under `unit_tests:` in a file of macros/."""
    if reader.root is None and not reader.broken:
        reader.problem("SR104", Place(reader.file), "the file is empty", "Add `unit_tests:`, or delete the file.")
    if reader.root is None:
        return ()
    found = []
    root = reader.mapping(
        reader.root, Place(reader.file), "a file of macros/", ("version", "unit_tests"), ("unit_tests",)
    )
    for item, place in reader.items(root, "unit_tests", "the file"):
        item = mapping(reader, item, place, "a unit test of a macro", TEST_KEYS, ("name", "macro", "sql", "expect"))
        if item:
            test = _test(reader, item, place, known, project)
            if enabled(reader, item):
                found.append(test)
    return tuple(found)


def _test(reader: Reader, item: Any, place: Place, known: Known, project: Project) -> UnitTest:
    macro = reader.text(item, "macro")
    if macro and macro not in known.macros:
        hint = f"Macros: {listed(sorted(known.macros))}.{did_you_mean(macro, known.macros)}"
        reader.problem("SR112", reader.value_place(item, "macro"), f"unknown macro `{macro}`", hint)
    values, macros = overrides(reader, item, known)
    given = _given(reader, item, known)
    test = UnitTest(
        name=reader.text(item, "name"),
        model=macro,
        given=given,
        expect=expected(reader, item, Table(f"the query of {macro}", {}), Table("", {}), known, step=False),
        place=place,
        description=reader.text(item, "description"),
        as_of=time_of(reader, item),
        vars=values,
        macros=macros,
        macro=macro,
        sql=reader.text(item, "sql"),
        tags=tags(reader, item),
    )
    if test.expect.quarantined is not None:
        hint = "Remove it: only models that land a source quarantine lines."
        reader.problem(
            "SR121", reader.place(item["expect"], "quarantined"), "`quarantined` in the test of a macro", hint
        )
    if isinstance(item.get("sql"), str):
        _check(reader, item, test, known, project)
    return test


def _check(reader: Reader, item: Any, test: UnitTest, known: Known, project: Project) -> None:
    """Validate the SELECT like a model's."""
    passage = passage_of(reader, reader.value_place(item, "sql"), item["sql"])
    if not re.search(rf"\b{re.escape(test.macro)}\s*\(", test.sql) and test.macro in known.macros:
        hint = f"Call the macro: select {{{{ {test.macro}('id') }}}} as id from given"
        reader.problem("SR121", passage.place, f"the query never calls {test.macro}()", hint)
    if any(not one.sql for one in test.given):
        return  # errors in its rows are reported already
    pseudo = Model.of_text(test.model, reader.file, passage.padded())
    try:
        rendered, _ = render.check(project, pseudo, test.vars, test.macros)
        refuse_refs(rendered, test)
        parse.qualified(over_given(rendered, test), {parse.REF: {}, parse.SOURCE: {}}, known.functions)
    except ProjectError as error:
        reader.problems.extend(shown(passage, one) for one in error.problems)


def _given(reader: Reader, item: Any, known: Known) -> tuple[Given, ...]:
    found: list[Given] = []
    for one, place in reader.items(item, "given", "a unit test of a macro"):
        one = reader.mapping(one, place, "an input of a macro's test", GIVEN_KEYS, ("input", "columns"))
        name, at = reader.text(one, "input"), reader.value_place(one, "input")
        if name in {other.input for other in found}:
            reader.problem("SR112", at, f"duplicate input {name}", "Move all rows into one input.")
        elif name and not re.fullmatch(r"[A-Za-z_]\w*", name):
            hint = "Use a plain name, and select from it. `columns: ref('x')` gives the input the columns of a model."
            reader.problem("SR121", at, f"invalid name {name} for an input of a macro's test", hint)
        kinds = _columns(reader, one, known)
        table = Table(f"the input {name}", kinds)
        made = content(reader, one, table, known)
        if made.rows is None and not made.sql:
            reader.problem("SR104", place, "an input of a macro's test lacks `rows`", "Add `rows:`.")
        rows: tuple[Row, ...] = made.rows or ()
        sql = made.sql or (select_of(rows, kinds) if kinds else "")
        found.append(Given(name, rows, place, sql))
    return tuple(found)


def _columns(reader: Reader, one: Any, known: Known) -> Mapping[str, str]:
    """Return the types of an input: given one by one, or those of a model, a seed or a source."""
    value = one.get("columns")
    if not isinstance(value, str):
        return types_of(reader, one, "columns")
    noun = known.inputs.get(input_name(value))
    if noun is None:
        hint = f"Inputs: {listed(known.inputs)}.{did_you_mean(value, known.inputs)}"
        reader.problem("SR112", reader.value_place(one, "columns"), f"unknown input {value}", hint)
        return {}
    return {column.name: column.type for column in noun.columns}
