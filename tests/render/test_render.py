"""Templates: their functions, what the sandbox refuses, and the source line of each line."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sqlrun.errors import Place, ProjectError
from sqlrun.project import Column, Config, Macro, Model, Project, Rendered, Source
from sqlrun.render import render

COLUMN = Column("id", "int", "It.", Place("models/m.yml"))


def model(sql: str, name: str = "m", config: Config | None = None) -> Model:
    return Model(
        name, f"models/{name}.sql", sql, f"models/{name}.yml", "", (), False, (COLUMN,), config or Config(), ()
    )


def loaded(*models: Model, macros: dict[str, str] | None = None, **values: object) -> Project:
    source = Source("shop", "orders", "json", "data", (COLUMN,), "", Place("models/_sources.yml"))
    made = tuple(Macro(name, f"macros/{name}.sql", text) for name, text in (macros or {}).items())
    return Project("/p", "p", "local", values, models, (), (source,), made, ())


def rendered(sql: str, macros: dict[str, str] | None = None, **values: object) -> Rendered:
    return render.project(loaded(model(sql), model("select 1", "other"), macros=macros, **values))[0]


def refused(sql: str, macros: dict[str, str] | None = None, **values: object) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        rendered(sql, macros, **values)
    return [problem.code for problem in caught.value.problems]


def test_refs_and_sources_are_recorded_once() -> None:
    """In the order of the template's calls."""
    found = rendered("{{ ref('other') }} {{ source('shop', 'orders') }} {{ ref('other') }}")

    assert found.sql == "`ref`.`other` `source`.`shop__orders` `ref`.`other`"
    assert (found.refs, found.sources) == (("other",), ("shop__orders",))


def test_all_unknown_names_of_a_model_are_reported() -> None:
    """Not just the first one."""
    assert refused("{{ ref('a') }} {{ ref('b') }} {{ source('shop', 'x') }}") == ["SR202", "SR202", "SR203"]


@pytest.mark.parametrize(
    "sql",
    [
        "{{ ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ref.__globals__ }}",
        "{{ ref.__self__ }}",
        "{{ double.__globals__ }}",
        "{{ var.__func__.__globals__ }}",
        "{{ config.__self__._known }}",
        "{{ this._calls }}",
        "{{ self.__init__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ '{a.__class__}'.format_map({'a': 1}) }}",
        "{% set f = '{0.__class__}'.format %}{{ f(1) }}",
        "{% for x in [1].__iter__.__self__.__class__.__mro__ %}{{ x }}{% endfor %}",
        "{{ numbers.append(4) }}",
        "{% set x = [1] %}{{ x.pop() }}",
        "{% set x = {} %}{{ x.clear() }}",
        "{{ cycler }}",
        "{{ lipsum() }}",
        "{{ joiner() }}",
        "{{ dict() }}",
        "{{ open('/etc/passwd') }}",
        "{% include '/etc/passwd' %}",
        "{% import 'macros/double.sql' as m %}",
        "{% extends 'models/other.sql' %}",
        "{% do run_query('select 1') %}",
        "{{ dbt_utils._macros }}",
        "{{ adapter.dispatch.__globals__ }}",
        "{{ target._values }}",
        "{{ exceptions.warn.__globals__ }}",
        "{% if execute %}{% endif %}",
        "{{ graph.nodes }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ loop }}",
    ],
)
def test_the_sandbox_has_no_way_out(sql: str) -> None:
    """Attributes that lead out, changes of shared values, files and Jinja's own helpers."""
    codes = refused(sql, {"double": "{% macro double(x) %}{{ x }} * 2{% endmacro %}"}, numbers=[1, 2, 3])

    assert codes == ["SR201"]


@pytest.mark.parametrize(
    "sql",
    [
        "{% for x in range(10 ** 9) %}{{ x }}{% endfor %}",
        "{% for x in range(90000) %}{% endfor %}{% for x in range(90000) %}{% endfor %}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ 10 ** 9 * 'a' }}",
        "{{ 9 ** 999999 }}",
        "{{ [0] * 10 ** 9 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
    ],
)
def test_short_templates_have_bounded_results(sql: str) -> None:
    """Loops and products have a limit."""
    assert refused(sql) == ["SR208"]


def test_ordinary_arithmetic_works() -> None:
    """The limits are far beyond what a query needs."""
    text = "{{ 60 * 60 }} {{ 2 ** 10 }} {{ '%02d' % 7 }} {{ '-' * 3 }} {{ 7 % 4 }} {{ range(3)|list }}"

    assert rendered(text).sql == "3600 1024 07 --- 3 [0, 1, 2]"


def test_templates_cannot_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the variable exists."""
    monkeypatch.setenv("SECRET", "canary")
    with pytest.raises(ProjectError) as caught:
        rendered("{{ env_var('SECRET', 'x') }}")

    assert [p.code for p in caught.value.problems] == ["SR207"]
    assert "canary" not in str(caught.value)


def test_macros_call_each_other_whatever_their_order() -> None:
    """a calls z and z is read after a; the recorded refs are the model's."""
    macros = {
        "a": "{% macro a(x) %}{{ z(x) }} + 1{% endmacro %}",
        "z": "{% macro z(x) %}(select {{ x }} from {{ ref('other') }}){% endmacro %}",
    }
    found = rendered("select {{ a('id') }}", macros)

    assert found.sql == "select (select id from `ref`.`other`) + 1"
    assert found.refs == ("other",)


def test_macros_that_call_each_other_without_end_are_refused() -> None:
    """With a message, not a stack trace."""
    macros = {"a": "{% macro a() %}{{ b() }}{% endmacro %}", "b": "{% macro b() %}{{ a() }}{% endmacro %}"}

    assert refused("select {{ a() }}", macros) == ["SR201"]


def test_a_broken_macro_is_reported_once() -> None:
    """For any number of models that call it."""
    project = loaded(model("{{ a() }}"), model("{{ a() }}", "n"), macros={"a": "{% macro a() %}{{ {% endmacro %}"})
    done, problems = render.attempt(project)

    assert done == ()
    assert [(p.code, p.place.file) for p in problems] == [("SR201", "macros/a.sql")]


def test_a_ref_in_a_macro_names_its_caller() -> None:
    """The place is the macro's, the hint names the caller."""
    with pytest.raises(ProjectError) as caught:
        rendered("select 1\n\nfrom {{ a() }}", {"a": "{% macro a() %}\n  {{ ref('nothing') }}\n{% endmacro %}"})
    problem = caught.value.problems[0]

    assert problem.place == Place("macros/a.sql", 2, 11)
    assert problem.hint.endswith("Called from models/m.sql:3.")


def test_config_wins_over_folder_and_contract() -> None:
    """Tags add up, other settings are replaced."""
    base = Config("view", ("id",), "merge", ("daily",))
    sql = "{{ config(materialized='table', partition_by='id', tags=['daily', 'hot']) }}select 1"
    found = render.project(loaded(model(sql, config=base)))[0]

    assert found.sql == "select 1"
    assert found.config == Config("table", ("id",), "merge", ("daily", "hot"))


@pytest.mark.parametrize(
    "call",
    ["materialized='incremental'", "unique_key='id'", "tags=3", "partition_by='day'", "at_worst=[]", "'view'"],
)
def test_config_is_checked(call: str) -> None:
    """Unknown keys and values are errors, not ignored."""
    assert refused(f"{{{{ config({call}) }}}}select 1") == ["SR205"]


def test_vars_have_values_or_defaults() -> None:
    """A unit test may set others."""
    project = loaded(model("{{ var('hours') }} {{ var('days', 7) }}"), hours=[1, 24])

    assert render.project(project)[0].sql == "[1, 24] 7"
    assert render.overridden(project, {"hours": 3}, {})(project.models[0]).sql == "3 7"
    with pytest.raises(ProjectError):
        render.overridden(replace(project, vars={}), {}, {})(project.models[0])


def test_a_macro_may_give_another_value() -> None:
    """dbt's overrides in unit tests: the value itself, also where another macro calls it."""
    one = Macro("one", "macros/one.sql", "{% macro one(x) %}1{% endmacro %}")
    two = Macro("two", "macros/two.sql", "{% macro two() %}{{ one(3) }}{{ one(4) }}{% endmacro %}")
    project = replace(loaded(model("{{ two() }}{% if one(1) %}yes{% endif %}")), macros=(one, two))

    assert render.project(project)[0].sql == "11yes"
    assert render.overridden(project, {}, {"one": Decimal("2.50")})(project.models[0]).sql == "2.502.50yes"
    assert render.overridden(project, {}, {"one": False})(project.models[0]).sql == "FalseFalse"


@pytest.mark.parametrize(
    ("sql", "lines"),
    [
        ("a\nb\nc", "a1 b2 c3"),
        ("{% if true %}\na\n{% endif %}\nb", " a2  b4"),
        ("{%- if true %}\na\n{%- endif %}\nb\n", " a2 b4 "),
        ("{% for x in [1, 2] %}\n{{ x }}\n{% endfor %}\nb", "12 22 b4"),
        ("a\n{# one\ntwo\n#}\nb", "a1  b5"),
        ("{#-\n one\n-#}\nb\nc", "b4 c5"),
        ("{% set x = 1 %}\n{% set y %}\nlong\n{% endset %}\nb{{ x }}", "b15"),
        ("{{ config(\n    tags=['a']\n) }}\na", "a4"),
        ("a\n{{ two('x') }}\nb", "a1 x2 y2 b3"),
        ("a\n{{ two(\n    'x'\n) }}\nb", "a1 x2 y2 b5"),
        ("{% raw %}\n{{ a }}\n{% endraw %}\nb", "{{a}}2 b4"),
        ("{{ '}}' }}\n{{ '%}' }}\nb", "}}1 %}2 b3"),
        ("{% filter upper %}\na\n{% endfilter %}\nb", "A1 b4"),
        ("{% call wrap() %}\na\n{% endcall %}\nb", "(1 a1 )1 b4"),
    ],
)
def test_each_line_has_its_source_line(sql: str, lines: str) -> None:
    """Through loops, blocks, comments, whitespace control and calls over several lines."""
    macros = {
        "two": "{% macro two(a) -%}\n{{ a }}\ny\n{%- endmacro %}",
        "wrap": "{% macro wrap() -%}\n({{ caller() }})\n{%- endmacro %}",
    }
    found = rendered(sql, macros)
    texts = found.sql.split("\n")
    shown = {
        f"{text.replace(' ', '')}{number}" for text, number in zip(texts, found.lines, strict=True) if text.strip()
    }

    assert len(found.lines) == len(texts)
    assert shown == set(lines.split())


def test_whitespace_control_is_jinjas_own() -> None:
    """No trim, comparison or filter sees the marks of lines."""
    sql = "a {%- if 'x' == 'x' -%} b {%- endif %}{% set t %}x{% endset %}{{ 1 if t == 'x' }} {{ ' y '|trim }}"

    assert rendered(sql).sql == "ab1 y"


def test_this_and_is_incremental() -> None:
    """`this` is a ref to the model itself; is_incremental is refused, called or not."""
    assert rendered("{{ this }}").refs == ("m",)
    assert refused("{% if is_incremental() %}x{% endif %}") == ["SR206"]
    assert refused("{% if is_incremental %}x{% endif %}") == ["SR206"]
