"""A contract lists what its author promises; the other columns and types follow from the query."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.schema import PrimitiveType

from sqlrun import pipeline, project_files
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.runtime.disk_cache import Cache
from tests.support import broken
from tests.support.projects import Site
from tests.support.script import START

SEED = {
    "seeds/dishes.csv": "dish_id,price\n1,9.50\n2,12.00\n",
    "seeds/dishes.yml": (
        "seeds:\n  - name: dishes\n    grain: [dish_id]\n    columns:\n      - {name: dish_id, data_type: int}\n"
        '      - {name: price, data_type: "decimal(10,2)"}\n'
    ),
}
MENU = "select dish_id, price * 2 as twice, 'x' as word from {{ ref('dishes') }}\n"


def project(folder: Path, files: dict[str, str]) -> Path:
    return broken.write(folder, {**SEED, **files})


def types(root: Path, name: str, cache: Cache | None = None) -> dict[str, str]:
    models = {model.name: model for model in pipeline.prepare(root, cache).project.models}
    return {column.name: column.type for column in models[name].columns}


def codes(root: Path) -> list[str]:
    with pytest.raises(ProjectError) as raised:
        pipeline.prepare(root)
    return [f"{problem.code} {problem.place}" for problem in raised.value.problems]


@pytest.mark.slow
def test_models_without_contracts_build(tmp_path: Path) -> None:
    """Their columns follow from the query, those of a model that reads another from that one's query."""
    files = {
        "models/a_top.sql": "select word, sum(twice) as total from {{ ref('menu') }} group by word\n",
        "models/menu.sql": MENU,
    }
    root = project(tmp_path, files)

    assert types(root, "menu") == {"dish_id": "int", "twice": "decimal(12,2)", "word": "string"}
    assert types(root, "a_top") == {"word": "string", "total": "decimal(22,2)"}
    site = Site(root, DuckDBEngine())
    assert site.tick(START).published
    assert [(row["word"], str(row["total"])) for row in site.rows("a_top")] == [("x", "43.00")]


def test_fields_of_lines_may_have_capital_letters(tmp_path: Path) -> None:
    """A query's columns have names in lower case, and the types of the fields."""
    sources = (
        "sources:\n  - name: raw\n    tables:\n      - name: clicks\n        path: data\n        columns:\n"
        "          - {name: eventId, data_type: string}\n          - {name: nItems, data_type: int}\n"
    )
    files = {
        "models/_sources.yml": sources,
        "models/clicks.sql": "select eventId, nItems * 2 as twoItems from {{ source('raw', 'clicks') }}\n",
        "models/by_event.sql": "select eventId, max(twoItems) as most from {{ ref('clicks') }} group by eventId\n",
    }
    root = project(tmp_path, files)

    assert types(root, "clicks") == {"eventid": "string", "twoitems": "int"}
    assert types(root, "by_event") == {"eventid": "string", "most": "int"}


STORED = {
    "sums": (
        "select percentile(price, 0.5) as middle, percentile_disc(0.5) within group (order by dish_id) as low,\n"
        "  median(dish_id) as half, skewness(dish_id) as skew, percentile(price, array(0.0, 1.0)) as ends\n"
        "from {{ ref('dishes') }}\n",
        {"middle": "double", "low": "double", "half": "double", "skew": "double", "ends": "array<double>"},
        [{"middle": 10.75, "low": 1.0, "half": 1.5, "skew": 0.0, "ends": [9.5, 12.0]}],
    ),
    "levels": (
        "select dish_id, grouping(dish_id) as above, grouping_id() as level, sum(price) as price\n"
        "from {{ ref('dishes') }} group by rollup (dish_id)\n",
        {"dish_id": "int", "above": "tinyint", "level": "bigint", "price": "decimal(20,2)"},
        [
            {"dish_id": None, "above": 1, "level": 1, "price": Decimal("21.50")},
            {"dish_id": 1, "above": 0, "level": 0, "price": Decimal("9.50")},
            {"dish_id": 2, "above": 0, "level": 0, "price": Decimal("12.00")},
        ],
    ),
    "named": (
        "select d.dish_id, v.share, map_keys(map(v.word, d.price)) as words, map(v.word, d.price)['b'] as b,\n"
        "  get(array(v.share), 0) as first\n"
        "from {{ ref('dishes') }} as d join (values (1, 'a', 1), (2, 'b', 2.5)) as v(id, word, share)\n"
        "  on d.dish_id = v.id\n",
        {"dish_id": "int", "share": "decimal(11,1)", "words": "array<string>", "b": "decimal(10,2)",
         "first": "decimal(11,1)"},
        [
            {"dish_id": 1, "share": Decimal("1.0"), "words": ["a"], "b": None, "first": Decimal("1.0")},
            {"dish_id": 2, "share": Decimal("2.5"), "words": ["b"], "b": Decimal("12.00"), "first": Decimal("2.5")},
        ],
    ),
    "numbers": (
        "select dish_id, n, n & 1 as odd, extract(second from timestamp '2026-01-02 03:04:05.5') as seconds,\n"
        "  date '2026-01-31' + interval 1 hour as later\n"
        "from {{ ref('dishes') }} lateral view explode(sequence(1, dish_id)) l as n where dish_id = 2\n",
        {"dish_id": "int", "n": "int", "odd": "int", "seconds": "decimal(8,6)", "later": "timestamp"},
        [
            {"dish_id": 2, "n": n, "odd": n % 2, "seconds": Decimal("5.500000"),
             "later": datetime(2026, 1, 31, 1, tzinfo=timezone.utc)}
            for n in (1, 2)
        ],
    ),
}  # fmt: skip


# Spark's names of the types that Delta's log calls something else.
LOGGED = {"byte": "tinyint", "integer": "int", "long": "bigint"}


@pytest.mark.slow
@pytest.mark.disk
def test_inferred_types_are_stored(tmp_path: Path) -> None:
    """A table's log has the types that Spark would give, and the rows have Spark's values."""
    root = project(tmp_path, {f"models/{name}.sql": sql for name, (sql, _, _) in STORED.items()})
    site = Site(root, DuckDBEngine())
    assert site.tick(START).published

    for name, (_, kinds, rows) in STORED.items():
        (log,) = Path(site.warehouse, name).glob("*/_delta_log")
        fields = {field.name: field.type for field in DeltaTable(str(log.parent)).schema().fields}
        stored = {name: kind.type for name, kind in fields.items() if isinstance(kind, PrimitiveType)}
        assert types(root, name) == kinds
        assert {column: LOGGED.get(kind, kind) for column, kind in stored.items() if column in kinds} == {
            column: kind for column, kind in kinds.items() if not kind.startswith("array")
        }
        found = [{column: row[column] for column in kinds} for row in site.rows(name)]
        assert sorted(map(repr, found)) == sorted(map(repr, rows))


TIMES = {
    "seeds/waits.csv": "id,began,ended,on_day\n1,2026-05-04 12:00:00,2026-05-04 12:40:00,2026-05-04\n",
    "seeds/waits.yml": (
        "seeds:\n  - name: waits\n    grain: [id]\n    columns:\n      - {name: id, data_type: int}\n"
        "      - {name: began, data_type: timestamp}\n      - {name: ended, data_type: timestamp}\n"
        "      - {name: on_day, data_type: date}\n"
    ),
}
SECONDS = "Write timestampdiff(second, waits.began, waits.ended) as x, or another unit."
NUMBER = "Write a number, such as timestampdiff(second, begin, end) as x."


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select id, ended - began as x from {{ ref('waits') }}", SECONDS),
        ("select id, cast(ended - began as interval day to second) as x from {{ ref('waits') }}", SECONDS),
        (
            "select id, current_date() - on_day as x from {{ ref('waits') }}",
            "Write datediff(current_date, waits.on_day) as x, the number of days.",
        ),
        ("select max(ended - began) as x from {{ ref('waits') }}", NUMBER),
        ("select id, -(interval 1 day) * 2 as x from {{ ref('waits') }}", NUMBER),
        ("select id, interval 1 day + interval 2 hours as x from {{ ref('waits') }}", NUMBER),
        ("select id, make_interval(1) as x from {{ ref('waits') }}", NUMBER),
        ("with w as (select id, ended - began as y from {{ ref('waits') }}) select id, w.y as x from w", NUMBER),
        (
            "select id, coalesce(ended - began, interval 0 seconds) as x from {{ ref('waits') }} union all "
            "select id, null from {{ ref('waits') }}",
            NUMBER,
        ),
    ],
)
def test_an_interval_is_no_column(query: str, hint: str, tmp_path: Path) -> None:
    """No cast helps, so another advice is given."""
    with pytest.raises(ProjectError) as raised:
        pipeline.prepare(project(tmp_path, {**TIMES, "models/gaps.sql": query + "\n"}))
    (problem,) = raised.value.problems

    assert (problem.code, problem.message) == ("SR312", "column `x` is an interval, which a Delta table can't store")
    assert problem.hint == hint


@pytest.mark.parametrize(
    "item", ["array()", "decode(id, 1, id)", "struct(null as y)", "on_day + make_interval(0, 1)", "max(null)"]
)
def test_what_is_no_interval_can_be_cast(item: str, tmp_path: Path) -> None:
    """A type that isn't known for another reason."""
    query = f"select {item} as x from {{{{ ref('waits') }}}}\n"
    with pytest.raises(ProjectError) as raised:
        pipeline.prepare(project(tmp_path, {**TIMES, "models/gaps.sql": query}))

    assert [problem.hint.split(",")[0] for problem in raised.value.problems] == ["Write cast(... as TYPE) as x"]


@pytest.mark.parametrize(
    ("item", "message", "hint"),
    [
        ("explode_outer(map('a', id))", "explode_outer() of a map returns two columns", "map_entries"),
        ("inline(array(struct(id, began)))", "inline() returns a column for each field", "explode(x)"),
    ],
)
def test_a_generator_of_several_columns_is_no_column(item: str, message: str, hint: str, tmp_path: Path) -> None:
    query = f"select id, {item} as x from {{{{ ref('waits') }}}}\n"
    with pytest.raises(ProjectError) as raised:
        pipeline.prepare(project(tmp_path, {**TIMES, "models/gaps.sql": query}))
    (problem,) = raised.value.problems

    assert (problem.code, message in problem.message, hint in problem.hint) == ("SR312", True, True)


@pytest.mark.parametrize("kind", ["interval", "interval day to second", "array<interval day>", "struct<a:interval>"])
def test_a_contract_can_not_promise_an_interval(kind: str, tmp_path: Path) -> None:
    """Delta has no such type: a build would fail at its first tick."""
    files = {
        "models/gaps.sql": "select ended - began as x from {{ ref('waits') }}\n",
        "models/gaps.yml": f"models:\n  - name: gaps\n    columns:\n      - {{name: x, data_type: '{kind}'}}\n",
    }
    with pytest.raises(ProjectError) as raised:
        pipeline.prepare(project(tmp_path, {**TIMES, **files}))

    assert [(problem.code, str(problem.place)) for problem in raised.value.problems] == [
        ("SR309", "models/gaps.yml:4:9")
    ]
    assert raised.value.problems[0].message == f"column `x` is `{kind}`, which a Delta table can't store"


def test_a_field_may_be_called_interval(tmp_path: Path) -> None:
    files = {
        "models/gaps.sql": "select struct(id as interval) as x from {{ ref('waits') }}\n",
        "models/gaps.yml": (
            "models:\n  - name: gaps\n    columns:\n      - {name: x, data_type: 'struct<interval:int>'}\n"
        ),
    }

    assert types(project(tmp_path, {**TIMES, **files}), "gaps") == {"x": "struct<interval:int>"}


@pytest.mark.slow
def test_a_contract_may_list_a_part(tmp_path: Path) -> None:
    """What it says of a column holds, and the type that it leaves out is inferred."""
    contract = "models:\n  - name: menu\n    columns:\n      - {name: word, data_tests: [not_null]}\n"
    root = project(tmp_path, {"models/menu.sql": MENU.replace("'x'", "nullif('x', 'x')"), "models/menu.yml": contract})

    assert types(root, "menu") == {"dish_id": "int", "twice": "decimal(12,2)", "word": "string"}
    result = Site(root, DuckDBEngine()).tick(START)
    assert not result.published
    assert [check.place.line for check in result.checks if check.status.name == "FAIL"] == [4]


def test_a_file_has_the_contracts_of_several_models(tmp_path: Path) -> None:
    """Their unit tests are beside them."""
    contract = """\
models:
  - name: menu
    columns: [{name: word, description: A word.}]
  - {name: other, grain: [n]}
unit_tests:
  - name: one
    model: other
    given:
      - {input: ref('menu'), rows: [{dish_id: 1}, {dish_id: 2}]}
    expect: {rows: [{n: 2}]}
"""
    files = {
        "models/deep/menu.sql": MENU,
        "models/other.sql": "select count(*) as n from {{ ref('menu') }}\n",
        "models/schema.yml": contract,
    }
    found = {model.name: model for model in pipeline.prepare(project(tmp_path, files)).project.models}

    assert [column.description for column in found["menu"].columns] == ["", "", "A word."]
    assert found["other"].grain == ("n",) and found["other"].unit_tests[0].name == "one"
    assert {model.contract_file for model in found.values()} == {"models/schema.yml"}


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("grain: [nothing]", "SR108 models/menu.yml:2:5"),
        ("event_time: word", "SR110 models/menu.yml:2:5"),
        ("config: {partition_by: [nothing]}", "SR108 models/menu.yml:2:5"),
        ("columns: [{name: nothing}]", "SR307 models/menu.yml:3:15"),
    ],
)
def test_what_a_contract_says_of_other_columns_is_a_problem(tmp_path: Path, says: str, code: str) -> None:
    """The columns are known as soon as they are inferred."""
    root = project(tmp_path, {"models/menu.sql": MENU, "models/menu.yml": f"models:\n  - name: menu\n    {says}\n"})

    assert codes(root) == [code]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("select nothing from {{ ref('dishes') }}", "SR304 models/menu.sql:1:8"),
        ("select 1, 2 from {{ ref('dishes') }}", "SR306 models/menu.sql:1:8"),
        ("select 1 as a, 2 as a from {{ ref('dishes') }}", "SR308 models/menu.sql:1:16"),
        ("select from", "SR301 models/menu.sql:1:8"),
        ("select {{ nothing }} as a", "SR201 models/menu.sql:1:11"),
        ("select * from {{ ref('reader') }}", "SR401 models/menu.sql:1:18"),
    ],
)
def test_readers_of_a_broken_model_are_not_accused(tmp_path: Path, query: str, code: str) -> None:
    """Nothing is known of its columns."""
    files = {"models/menu.sql": f"{query}\n", "models/reader.sql": "select word from {{ ref('menu') }}\n"}

    found = codes(project(tmp_path, files))

    assert found[0] == code and not any("reader" in one for one in found)


def test_an_enforced_contract_is_complete(tmp_path: Path) -> None:
    """A type that it leaves out is missing, and so is the contract itself."""
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "x"\n[tool.sqlrun.models]\ncontract = {enforced = true}\n',
        "models/a.sql": MENU,
        "models/b.sql": MENU,
        "models/b.yml": "models:\n  - name: b\n    columns: [{name: dish_id}]\n",
        "models/c.sql": MENU,
        "models/c.yml": "models:\n  - name: c\n",
    }

    assert codes(project(tmp_path, files)) == [
        "SR106 models/a.sql:1:1",
        "SR104 models/b.yml:3:15",
        "SR104 models/c.yml:2:5",
    ]


def test_inferred_columns_are_cached_and_follow_an_edit(tmp_path: Path) -> None:
    """An edit of a model changes the types of those that read it."""
    files = {"models/menu.sql": MENU, "models/top.sql": "select max(twice) as most from {{ ref('menu') }}\n"}
    root = project(tmp_path, files)
    first = types(root, "top", Cache.of(root))
    cache = Cache.of(root)

    assert types(root, "top", cache) == first == {"most": "decimal(12,2)"}
    assert cache.made == {}

    (root / "models" / "menu.sql").write_text(MENU.replace("price * 2", "cast(price as int)"))
    assert types(root, "top", Cache.of(root)) == {"most": "int"}


@pytest.mark.slow
def test_a_history_and_a_model_of_a_snapshot_need_no_columns(tmp_path: Path) -> None:
    """The columns of a version are inferred, too."""
    files = {
        "models/kept.sql": "{{ config(materialized='history') }}\nselect dish_id, price from {{ ref('dishes') }}\n",
        "models/kept.yml": "models:\n  - {name: kept, grain: [dish_id, valid_from]}\n",
        "models/now.sql": "select dish_id, valid_to from {{ ref('dish_versions') }} where is_current\n",
        "snapshots/dishes.yml": (
            "snapshots:\n  - name: dish_versions\n    relation: ref('dishes')\n"
            "    config: {unique_key: dish_id, strategy: check, check_cols: all}\n"
        ),
    }
    root = project(tmp_path, files)

    assert types(root, "kept") == {
        "dish_id": "int", "price": "decimal(10,2)", "valid_from": "timestamp", "valid_to": "timestamp",
        "is_current": "boolean",
    }  # fmt: skip
    assert types(root, "now") == {"dish_id": "int", "valid_to": "timestamp"}
    assert Site(root, DuckDBEngine()).tick(START).published


def test_a_problem_is_reported_once_beside_snapshots(tmp_path: Path) -> None:
    """Columns are inferred before snapshots are read, and again for models that read one."""
    files = {
        "models/menu.sql": MENU,
        "models/menu.yml": "models:\n  - {name: menu, grain: [nothing]}\n",
        "snapshots/dishes.yml": (
            "snapshots:\n  - name: dish_versions\n    relation: ref('dishes')\n"
            "    config: {unique_key: dish_id, strategy: check, check_cols: all}\n"
        ),
    }

    assert [problem.code for problem in project_files.read(project(tmp_path, files)).problems] == ["SR108"]
