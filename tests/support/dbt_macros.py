"""Calls of the macros that come along from dbt and its packages, each with its result, found without sqlrun."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlrun.errors import Place
from sqlrun.load import built_in_macros
from sqlrun.project import Column, Macro, Model, Project, Rendered
from sqlrun.render import render
from tests.support.both_engines import Row, Rows

TABLE = Rows(
    "t",
    (
        ("id", "int"), ("a", "int"), ("b", "int"), ("s", "string"), ("nothing", "string"), ("at", "timestamp"),
        ("later", "timestamp"), ("d", "date"), ("url", "string"), ("x", "double"),
    ),
    (
        ("7", "10", "4", "'ab,cd,ef'", None, "'2026-02-28 23:30:15'", "'2026-03-01 00:10:20'", "'2026-02-28'",
         "'https://shop.example/menu/tea?lang=pt&page=2'", "38.7D"),
    ),
)  # fmt: skip
VALUES: Row = (
    7, 10, 4, "ab,cd,ef", None, datetime(2026, 2, 28, 23, 30, 15), datetime(2026, 3, 1, 0, 10, 20), date(2026, 2, 28),
    "https://shop.example/menu/tea?lang=pt&page=2", 38.7,
)  # fmt: skip


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def haversine(unit: float, lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Return a distance on a sphere of 3961 miles by the spherical law of cosines, another formula."""
    lat1, lon1, lat2, lon2 = map(math.radians, (lat1, lon1, lat2, lon2))
    angle = math.acos(math.sin(lat1) * math.sin(lat2) + math.cos(lat1) * math.cos(lat2) * math.cos(lon2 - lon1))
    return 3961 * angle * unit


# A call, and its value for the one row of the table.
EXPRESSIONS: tuple[tuple[str, Any], ...] = (
    ("dbt.array_append(dbt.array_construct(['a', 'b']), 'id')", [10, 4, 7]),
    ("dbt.array_concat(dbt.array_construct(['a']), dbt.array_construct([], 'int'))", [10]),
    ("dbt.bool_or('a > 5') ~ ' over ()'", True),
    ("dbt.cast('a', dbt.type_string())", "10"),
    ("dbt.cast_bool_to_text('a > 5')", "true"),
    ("dbt.concat(['s', \"'-'\", 's'])", "ab,cd,ef-ab,cd,ef"),
    ("dbt.date(2026, 'b', 1)", date(2026, 4, 1)),
    ("dbt.date_trunc('DAY', 'at')", datetime(2026, 2, 28)),
    ("dbt.date_trunc('week', 'at')", datetime(2026, 2, 23)),
    ("dbt.dateadd('day', 3, 'at')", datetime(2026, 3, 3, 23, 30, 15)),
    ("dbt.dateadd('month', '- b', 'at')", datetime(2025, 10, 28, 23, 30, 15)),
    ("dbt.dateadd(datepart='hour', interval='b', from_date_or_timestamp='at')", datetime(2026, 3, 1, 3, 30, 15)),
    ("dbt.datediff('at', 'later', 'year')", 0),
    ("dbt.datediff(\"date '2025-12-31'\", 'at', 'year')", 1),
    ("dbt.datediff(\"date '2025-12-31'\", 'at', 'quarter')", 1),
    ("dbt.datediff('at', 'later', 'month')", 1),
    ("dbt.datediff('later', 'at', 'month')", -1),
    ("dbt.datediff('at', \"timestamp '2026-03-02 00:00:00'\", 'week')", 1),
    ("dbt.datediff('at', 'later', 'week')", 0),
    ("dbt.datediff('at', 'later', 'day')", 1),
    ("dbt.datediff('at', 'later', 'hour')", 1),
    ("dbt.datediff('at', 'later', 'minute')", 40),
    ("dbt.datediff('at', 'later', 'second')", 2405),
    ("dbt.datediff('at', 'later', 'millisecond')", 2405000),
    ("dbt.hash('a')", md5("10")),
    ("dbt.last_day('d', 'month')", date(2026, 2, 28)),
    ("dbt.last_day('d', 'quarter')", date(2026, 3, 31)),
    ("dbt.last_day('d', 'year')", date(2026, 12, 31)),
    ("dbt.last_day('d', 'week')", date(2026, 3, 1)),
    ("dbt.length('s')", 8),
    ("dbt.position(\"','\", 's')", 3),
    ("dbt.replace('s', \"','\", \"'+'\")", "ab+cd+ef"),
    ("dbt.right('s', 2)", "ef"),
    ("dbt.safe_cast('s', dbt.type_int())", None),
    ("dbt.safe_cast(\"'12'\", dbt.type_bigint())", 12),
    ("dbt.split_part('s', \"','\", 2)", "cd"),
    ("dbt.split_part('s', \"','\", -1)", "ef"),
    ('dbt.string_literal("it\'s")', "it's"),
    ("'cast(a as ' ~ dbt.type_numeric() ~ ')'", Decimal("10.000000")),
    ("'cast(a as ' ~ dbt.type_float() ~ ')'", 10.0),
    ("'cast(d as ' ~ dbt.type_timestamp() ~ ')'", datetime(2026, 2, 28)),
    ("'cast(a as ' ~ dbt.type_boolean() ~ ')'", True),
    ("dbt_utils.generate_surrogate_key(['id', 's', 'nothing'])", md5("7-ab,cd,ef-_dbt_utils_surrogate_key_null_")),
    ("dbt_utils.generate_surrogate_key('id')", md5("7")),
    ("dbt_utils.get_url_host('url')", "shop.example"),
    ("dbt_utils.get_url_path('url')", "menu/tea"),
    ("dbt_utils.get_url_parameter('url', 'page')", "2"),
    ("dbt_utils.get_url_parameter('url', 'other')", None),
    ("dbt_utils.haversine_distance('x', '-9.1', 41.1, -8.6)", haversine(1, 38.7, -9.1, 41.1, -8.6)),
    ("dbt_utils.haversine_distance('x', '-9.1', 41.1, -8.6, unit='km')", haversine(1.60934, 38.7, -9.1, 41.1, -8.6)),
    ("dbt_utils.safe_add(['a', 'cast(nothing as int)', 'b'])", 14),
    ("dbt_utils.safe_subtract(['a', 'b'])", 6),
    ("dbt_utils.safe_divide('a', 'b')", 2.5),
    ("dbt_utils.safe_divide('a', 'b - 4')", None),
    ("dbt_utils.width_bucket('a', 0, 20, 5)", 3),
    ("dbt_utils.width_bucket('a', 10, 20, 5)", 1),
    ("dbt_utils.width_bucket('a', 0, 10, 5)", 6),
    ("dbt_utils.width_bucket('a', 11, 20, 5)", 0),
    ("\"'\" ~ dbt_utils.slugify('2 Green - Teas!') ~ \"'\"", "_2_green_teas"),
    ("dbt_date.convert_timezone('at', 'Europe/Lisbon')", datetime(2026, 2, 28, 23, 30, 15)),
    ("dbt_date.convert_timezone('at', 'America/New_York', 'UTC')", datetime(2026, 2, 28, 18, 30, 15)),
    ("dbt_date.date(2026, 'b', 1)", date(2026, 4, 1)),
    ("dbt_date.date_part('week', 'd')", 9),
    ("dbt_date.date_part('dayofweek', 'd')", 7),
    ("dbt_date.day_name('d')", "Sat"),
    ("dbt_date.day_name('d', short=false)", "Saturday"),
    ("dbt_date.day_of_month('d')", 28),
    ("dbt_date.day_of_week('d')", 6),
    ("dbt_date.day_of_week('d', isoweek=false)", 7),
    ("dbt_date.day_of_year('d')", 59),
    ("dbt_date.from_unixtimestamp('a')", datetime(1970, 1, 1, 0, 0, 10)),
    ("dbt_date.from_unixtimestamp('1500 * a', 'milliseconds')", datetime(1970, 1, 1, 0, 0, 15)),
    ("dbt_date.iso_week_start('d')", date(2026, 2, 23)),
    ("dbt_date.iso_week_end('d')", date(2026, 3, 1)),
    ("dbt_date.iso_week_of_year('d')", 9),
    ("dbt_date.month_name('d')", "Feb"),
    ("dbt_date.month_name('d', short=false)", "February"),
    ("dbt_date.n_days_ago(3, 'd')", date(2026, 2, 25)),
    ("dbt_date.n_days_away(3, 'd')", date(2026, 3, 3)),
    ("dbt_date.round_timestamp('at')", datetime(2026, 3, 1)),
    ("dbt_date.to_unixtimestamp(\"timestamp '1970-01-02 00:00:01'\")", 86401),
    ("dbt_date.tomorrow('d')", date(2026, 3, 1)),
    ("dbt_date.yesterday('d')", date(2026, 2, 27)),
    ("dbt_date.week_start('d')", date(2026, 2, 22)),
    ("dbt_date.week_start(\"date '2026-02-22'\")", date(2026, 2, 22)),
    ("dbt_date.week_end('d')", date(2026, 2, 28)),
    ("dbt_date.week_of_year('d')", 9),
)
# Of the tick's time, 2026-01-02 03:04:05 UTC.
AT_THE_TICK: tuple[tuple[str, Any], ...] = (
    ("dbt.current_timestamp()", datetime(2026, 1, 2, 3, 4, 5)),
    ("dbt_date.now()", datetime(2026, 1, 2, 3, 4, 5)),
    ("dbt_date.now('America/New_York')", datetime(2026, 1, 1, 22, 4, 5)),
    ("dbt_date.today()", date(2026, 1, 2)),
    ("dbt_date.today('America/New_York')", date(2026, 1, 1)),
    ("dbt_date.yesterday()", date(2026, 1, 1)),
    ("dbt_date.yesterday(tz='America/New_York')", date(2025, 12, 31)),
    ("dbt_date.last_week()", date(2025, 12, 22)),
    ("dbt_date.next_week('America/New_York')", date(2026, 1, 5)),
    ("dbt_date.last_month()", date(2025, 12, 1)),
    ("dbt_date.last_month_name()", "Dec"),
    ("dbt_date.last_month_number()", 12),
    ("dbt_date.next_month('America/New_York')", date(2026, 2, 1)),
    ("dbt_date.next_month_name(short=false)", "February"),
    ("dbt_date.next_month_number()", 2),
    ("dbt_date.n_months_ago(2)", date(2025, 11, 1)),
    ("dbt_date.n_months_away(2)", date(2026, 3, 1)),
    ("dbt_date.n_weeks_ago(2)", date(2025, 12, 15)),
    ("dbt_date.n_weeks_away(2)", date(2026, 1, 12)),
    ("dbt_date.periods_since('at')", -57),
    ("dbt_date.iso_week_start()", date(2025, 12, 29)),
    ("dbt_date.iso_week_start(tz='America/New_York')", date(2025, 12, 29)),
)
SOME = "except=['url', 'x', 's', 'nothing', 'at', 'later', 'd']"
WORDS = "(select explode(split(s, ',')) as w from {{ ref('t') }}) as words"
# Whole queries with their columns and their rows.
QUERIES: tuple[tuple[str, tuple[str, ...], list[Row]], ...] = (
    (
        "{{ dbt_utils.date_spine('day', \"cast('2026-02-27' as date)\", \"cast('2026-03-02' as date)\") }}",
        ("date_day",),
        [(datetime(2026, 2, 27),), (datetime(2026, 2, 28),), (datetime(2026, 3, 1),)],
    ),
    ("{{ dbt_utils.date_spine('hour', \"'2026-01-01'\", \"'2026-01-01'\") }}", ("date_hour",), []),
    (
        "{{ dbt_date.get_base_dates('2026-01-31', '2026-04-01', datepart='month') }}",
        ("date_month",),
        [(datetime(2026, 1, 31),), (datetime(2026, 2, 28),), (datetime(2026, 3, 31),)],
    ),
    ("{{ dbt_utils.generate_series(3) }}", ("generated_number",), [(1,), (2,), (3,)]),
    (f"select {{{{ dbt_utils.star(from=ref('t'), {SOME}) }}}} from {{{{ ref('t') }}}}", ("id", "a", "b"), [(7, 10, 4)]),
    (f"select {{{{ dbt_utils.star(ref('t'), 'o', {SOME}) }}}} from {{{{ ref('t') }}}} as o",
     ("id", "a", "b"), [(7, 10, 4)]),
    ("select a, {{ dbt_utils.pivot('s', ['ab,cd,ef', 'x'], prefix='n ') }} from {{ ref('t') }} "
     "{{ dbt_utils.group_by(1) }}", ("a", "n ab,cd,ef", "n x"), [(10, 1, 0)]),
    ("select {{ dbt_utils.pivot('s', ['it\\'s'], alias=false, agg='max', then_value='a', else_value='b') }} as m "
     "from {{ ref('t') }}", ("m",), [(4,)]),
    ("select id, a from ({{ dbt_utils.deduplicate(ref('t'), 'a', 'id desc') }}) as one", ("id", "a"), [(7, 10)]),
    (
        "select {{ dbt.listagg('w', \"'; '\") }} as l from " + WORDS,
        ("l",),
        [("ab; cd; ef",)],
    ),
    (
        "select {{ dbt.listagg('w', \"'+'\", 'order by w', 2) }} as l from " + WORDS,
        ("l",),
        [("ab+cd",)],
    ),
    ("select a from {{ ref('t') }} {{ dbt.except() }} select b from {{ ref('t') }}", ("a",), [(10,)]),
    ("select a from {{ ref('t') }} {{ dbt.intersect() }} select b from {{ ref('t') }}", ("a",), []),
)  # fmt: skip


def project(*macros: Macro) -> Project:
    """Return a project with the table as a model, and nothing else."""
    columns = tuple(Column(name, kind, "", Place("t.yml")) for name, kind in TABLE.columns)
    table = Model("t", "models/t.sql", "", "t.yml", "", ("id",), False, columns, _CONFIG, ())
    return Project("/p", "p", "local", {}, (table,), (), (), macros, (), built_in=built_in_macros.beside(macros))


_CONFIG = Model.of_text("", "", "").config


def rendered(template: str) -> Rendered:
    """Return a query rendered."""
    return render.check(project(), Model.of_text("asked", "asked.sql", template))[0]


def statement(calls: Sequence[str]) -> str:
    """Return a template with each call as a column."""
    return f"select {', '.join(f'{{{{ {call} }}}} as c{n}' for n, call in enumerate(calls))} from {{{{ ref('t') }}}}"
