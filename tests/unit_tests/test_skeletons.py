"""Files by `sqlrun new` are valid as they are, leave other text alone, and stay inside of the project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.errors import UsageError
from sqlrun.unit_tests.author.scaffold import new_model, new_test
from sqlrun.unit_tests.author.yaml_writer import Written, appended
from sqlrun.unit_tests.run.run import run
from tests.support import broken

ORDERS = """sources:
  - name: shop
    description: A shop.
    tables:
      - name: orders
        description: Orders.
        format: json
        path: data/shop
        columns:
          - {name: order_id, data_type: string, description: "The order, like o-7.", nulls: false}
          - {name: guest, data_type: string, description: Who., tags: [pii]}
          - {name: status, data_type: string, description: How it is.}
          - {name: total, data_type: "decimal(10,2)", description: What it costs., unit: EUR}
          - {name: lines, data_type: "array<struct<dish:string,n:int>>", description: What it is of.}
          - {name: ordered_at, data_type: timestamp, description: When., unit: UTC}
"""
CHECKS = """expectations:
  - type: expect_column_values_to_be_in_set
    kwargs: {column: status, value_set: [placed, cancelled]}
    description: There are two.
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data" / "shop").mkdir(parents=True)
    recent = "select id from {{ ref('orders_2') }} where at > current_timestamp() - interval 1 hour"
    files = {
        "models/staging/_sources.yml": ORDERS,
        "models/marts/orders_2.sql": "select 1 as id, timestamp '2026-01-01 00:00:00' as at",
        "models/marts/orders_2.yml": broken.contract("orders_2", "id", "at timestamp"),
        "models/marts/recent.sql": recent,
        "models/marts/recent.yml": broken.contract("recent"),
    }
    return broken.write(tmp_path.resolve(), files)


def everything(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in root.rglob("*") if p.is_file() and "target" not in p.parts}


def statuses(root: Path) -> dict[str, str]:
    prepared = pipeline.prepare(root)
    queries = {query.name: query for query in prepared.queries}
    tests = [(test, q) for q in prepared.queries for test in q.rendered.model.unit_tests]
    return {result.name: result.status for result in run(prepared.project, queries, tests)}


@pytest.mark.slow
def test_a_new_model_loads_and_its_test_passes(root: Path) -> None:
    lines = new_model(root, "models/staging/stg_orders.sql", ("shop.orders",))

    assert lines[0] == "Wrote models/staging/stg_orders.sql."
    assert lines[-1] == "Next: edit them, then `sqlrun test --select stg_orders`."
    sql = (root / "models/staging/stg_orders.sql").read_text()
    assert sql.startswith("with orders as (\n    select * from {{ source(")
    assert statuses(root) == {"stg_orders_example": "pass"}


@pytest.mark.slow
def test_a_new_model_copies_its_inputs_contract(root: Path) -> None:
    """The contract has types, units, and the tag of a private column."""
    new_model(root, "staging/stg_orders", ("shop.orders",))
    model = next(m for m in pipeline.prepare(root).project.models if m.name == "stg_orders")

    assert {c.name: (c.type, c.unit, c.nullable, c.tags) for c in model.columns if c.name in ("guest", "total")} == {
        "guest": ("string", "", True, ("pii",)),
        "total": ("decimal(10,2)", "EUR", True, ()),
    }
    assert model.columns[0].nullable is False


@pytest.mark.slow
def test_a_new_model_reads_any_number_of_inputs(root: Path) -> None:
    new_model(root, "marts/both", ("recent", "orders_2"))
    new_model(root, "alone", ())

    assert "recent as (" in (root / "models/marts/both.sql").read_text()
    assert statuses(root) == {"both_example": "pass"}


BAD = {
    "../outside": "lacks a folder of models/",
    "/etc/outside": "lacks a folder of models/",
    "marts/../../outside": "lacks a folder of models/",
    "marts//x": "lacks a folder of models/",
    ".hidden/x": "lacks a folder of models/",
    "marts/a-b": "invalid name",
    "marts/": "invalid name",
    "marts/x__new": "reserved for sqlrun",
    "marts/recent": "models/marts/recent.sql already exists",
    "other/Recent": "also in models/marts/recent.sql",
    "marts/shop__orders": "also in models/staging/_sources.yml",
    "linked/x": "real folders",
    "marts/half": "already exists",
}


@pytest.mark.parametrize("path", BAD)
def test_an_invalid_new_model_is_rejected(root: Path, path: str) -> None:
    """Nothing is written then, neither in the project nor outside."""
    outside = root.parent / "outside"
    outside.mkdir(exist_ok=True)
    if path == "linked/x":
        (root / "models" / "linked").symlink_to(outside)
    if path == "marts/half":
        (root / "models" / "marts" / "half.yml").symlink_to("/nowhere")
    before = everything(root)

    with pytest.raises(UsageError, match=BAD[path].replace(".", r"\.")):
        new_model(root, path, ())

    assert everything(root) == before
    assert not list(outside.iterdir())


def test_an_unknown_input_of_a_new_model_is_rejected(root: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown input `recen`\. .*Did you mean `recent`"):
        new_model(root, "marts/x", ("recen",))


def test_an_invalid_new_model_leaves_no_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlrun.unit_tests.author.skeletons.sql", lambda read: "select nothing from nowhere\n")
    before = everything(root)

    with pytest.raises(Exception, match="nowhere"):
        new_model(root, "marts/x", ("recent",))

    assert everything(root) == before


@pytest.mark.slow
def test_a_new_test_has_a_typed_row_for_each_input_and_the_tick_s_time(root: Path) -> None:
    new_test(root, "recent", None)
    text = (root / "models/marts/recent.yml").read_text()

    assert '    as_of: "2026-01-01 12:00:00"\n' in text
    assert '          - {id: 1, at: "2026-01-01 11:50:00"}\n' in text
    assert text.endswith("    expect:\n      rows:\n        - {id: 1}\n")


@pytest.mark.slow
def test_example_values_follow_descriptions_and_checks(root: Path) -> None:
    broken.write(root, {"expectations/staging/stg_orders.yml": CHECKS})
    broken.write(root, {"models/staging/stg_orders.sql": "select order_id, status from {{ source('shop', 'orders') }}"})
    columns = ("order_id string", "status string")
    broken.write(root, {"models/staging/stg_orders.yml": broken.contract("stg_orders", *columns)})
    new_test(root, "stg_orders", None)
    text = (root / "models/staging/stg_orders.yml").read_text()

    assert "{order_id: o-7, guest: guest, status: placed, total: 9.50, lines: [{dish: dish, n: 1}]" in text
    assert "        - {order_id: o-7, status: placed}\n" in text


@pytest.mark.slow
def test_a_new_test_gets_a_free_name_and_rejects_one_in_use(root: Path) -> None:
    for _ in range(2):
        new_test(root, "recent", None)

    assert statuses(root) == {"recent_example": "pass", "recent_example_2": "pass"}
    with pytest.raises(UsageError, match=r"recent\.yml already has a unit test `recent_example`"):
        new_test(root, "orders_2", "recent_example")
    with pytest.raises(UsageError, match="invalid name"):
        new_test(root, "orders_2", "a: b")
    with pytest.raises(UsageError, match="matches nothing"):
        new_test(root, "order", None)


TEST = Written("new_one", "m", (("ref('a')", ({"id": 1},)),), ())
LINES = [
    "- name: new_one",
    "  model: m",
    "  given:",
    "    - input: ref('a')",
    "      rows:",
    "        - {id: 1}",
    "  expect:",
    "    rows: []",
]


def indented(blanks: str) -> str:
    return "".join(f"{blanks}{line}\n" for line in LINES)


OLD = "unit_tests:\n  - name: a # one\n    model: m\n    expect: {rows: []}"
TEXTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "none": ("models: []  # x\n", lambda t: f"{t}\nunit_tests:\n{indented('  ')}"),
    "behind": (f"models: []\n\n{OLD}\n", lambda t: f"{t}\n{indented('  ')}"),
    "no line end": (OLD, lambda t: f"{t}\n\n{indented('  ')}"),
    "in between": (f"{OLD}\n\n# models\nmodels: []\n", lambda t: f"{OLD}\n\n{indented('  ')}\n# models\nmodels: []\n"),
    "comments inside": (f"{OLD}\n  # - name: b\n", lambda t: f"{t}\n{indented('  ')}"),
    "no indent": ("unit_tests:\n- name: a\n  model: m\n", lambda t: f"{t}\n{indented('')}"),
    "empty": ("unit_tests: # none yet\nmodels: []\n", lambda t: t.replace("models", indented("  ") + "models")),
    "windows": ("a: 1\r\n", lambda t: t + f"\nunit_tests:\n{indented('  ')}".replace("\n", "\r\n")),
    "strange": ("a: 'x\u2028y'\n", lambda t: f"{t}\nunit_tests:\n{indented('  ')}"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_test_is_appended_and_other_text_stays(name: str) -> None:
    before, after = TEXTS[name]

    assert appended("m.yml", before, TEST) == after(before)


def test_tests_on_one_line_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"m\.yml:1: `unit_tests:` and its tests are on one line"):
        appended("m.yml", "unit_tests: [{name: a}]\n", TEST)
