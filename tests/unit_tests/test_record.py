"""Unit tests recorded from published rows: they pass, are small, and reveal no private value."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun import pipeline
from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import UnitTest
from sqlrun.unit_tests.author.pseudonyms import Masks
from sqlrun.unit_tests.run.run import run
from tests.support import broken
from tests.support.projects import Site

AS_OF = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
SOURCES = """sources:
  - name: shop
    description: A shop.
    tables:
      - name: sales
        description: Sales.
        format: json
        path: data/orders
        columns:
          - {name: id, data_type: int, description: The sale., nulls: false}
          - {name: shop, data_type: string, description: Where., nulls: false}
          - {name: guest, data_type: string, description: Who., tags: [pii]}
          - {name: amount, data_type: "decimal(10,2)", description: How much., unit: EUR}
          - {name: at, data_type: timestamp, description: When., unit: UTC}
"""
COLUMNS = ("id int", "shop string", "guest string", "amount decimal(10,2)", "at timestamp")
DAY = """select g.guest, g.shop, sum(s.amount) as total
from {{ ref('sales') }} s join {{ ref('firsts') }} g on s.guest = g.guest
where s.at > current_timestamp() - interval 24 hours and s.at <= current_timestamp()
group by g.guest, g.shop
"""


GUEST = "    grain: [guest]"


def tagged(text: str) -> str:
    return text.replace("{name: guest,", "{name: guest, tags: [pii],")


FILES = {
    "models/_sources.yml": SOURCES,
    "models/sales.sql": "select id, shop, guest, amount, at from {{ source('shop', 'sales') }}",
    "models/sales.yml": tagged(broken.contract("sales", *COLUMNS, extra="    grain: [id]")),
    # Its column isn't tagged, but copies a tagged one.
    "models/firsts.sql": "select guest, min(shop) as shop, count(*) as n from {{ ref('sales') }} group by guest",
    "models/firsts.yml": broken.contract(
        "firsts", "guest string", "shop string", "n bigint", extra="    grain: [guest]"
    ),
    "models/day.sql": DAY,
    "models/day.yml": broken.contract(
        "day", "guest string", "shop string", "total decimal(20,2)", extra="    grain: [guest]"
    )
    + "# the end\n",
    "models/shouted.sql": "select id, upper(guest) as loud from {{ ref('sales') }}",
    "models/shouted.yml": broken.contract("shouted", "id int", "loud string", extra="    grain: [id]"),
    "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
}
pytestmark = pytest.mark.usefixtures("unchecked")
GUESTS = ("Ada Lovelace", "bob@example.org")


@pytest.fixture(scope="module")
def ticked(unchecked: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a published tick: each guest buys every hour for three days, in two shops."""
    root = tmp_path_factory.mktemp("recorded").resolve()
    (root / "data" / "orders").mkdir(parents=True)
    broken.write(root, FILES)
    site = Site(root, DuckDBEngine())
    lines = [
        {"id": 2 * hour + who, "shop": "ab"[who], "guest": GUESTS[who], "amount": hour + 0.25,
         "at": str(AS_OF - timedelta(hours=hour))}
        for hour in range(72)
        for who in (0, 1)
    ]  # fmt: skip
    site.write("1.jsonl", [json.dumps(line) for line in lines])
    assert site.tick(AS_OF).ok
    return root


@pytest.fixture
def root(ticked: Path, tmp_path: Path) -> Path:
    """Return the project with the test's own YAML; the warehouse is only read."""
    for name in ("models", "profiles", "pyproject.toml"):
        (shutil.copytree if (ticked / name).is_dir() else shutil.copy)(ticked / name, tmp_path / name)
    (tmp_path / "data" / "orders").mkdir(parents=True)
    (tmp_path / "warehouse").symlink_to(ticked / "warehouse")
    return tmp_path.resolve()


def record(root: Path, *words: str) -> tuple[str, int]:
    shown = CliRunner().invoke(main, ["--project-dir", str(root), "test", "--record", *words])
    assert not isinstance(shown.exception, Exception), shown.exception
    return shown.output.replace("\n", " "), shown.exit_code


def own_tests(root: Path, model: str) -> tuple[UnitTest, ...]:
    prepared = pipeline.prepare(root)
    queries = {query.name: query for query in prepared.queries}
    own = [(test, queries[model]) for test in queries[model].rendered.model.unit_tests]
    assert [result.status for result in run(prepared.project, queries, own)] == ["pass"] * len(own)
    return tuple(test for test, _ in own)


@pytest.mark.slow
def test_a_recorded_window_includes_its_input_rows(root: Path) -> None:
    """The test has 24 of 144 sales, those of that guest on that day, the guest's own row, and the tick's as_of."""
    said, code = record(root, "day", "--where", "shop = 'a'")
    (test,) = own_tests(root, "day")
    given = {one.input: one.rows for one in test.given}

    assert code == 0
    assert "24 of ref('sales')" in said
    assert (test.name, test.as_of) == ("day_recorded", "2026-05-04 12:00:00")
    assert {row["id"] for row in given["ref('sales')"]} == set(range(0, 48, 2))
    assert test.description == "Recorded from tick 1, where shop = 'a'."
    assert test.expect.rows == ({"guest": "masked_1", "shop": "a", "total": Decimal("282.00")},)


@pytest.mark.slow
def test_private_values_are_masked_in_all_copies(root: Path) -> None:
    """No guest's name is in the file, nor in the condition; the join still matches each guest."""
    said, _ = record(root, "day", "--where", f"guest = '{GUESTS[0]}'")
    text = (root / "models/day.yml").read_text()

    assert "Masked: sales.guest, firsts.guest." in said
    assert not any(guest in text for guest in GUESTS)
    assert {row["guest"] for one in own_tests(root, "day")[0].given for row in one.rows} == {"masked_1"}


@pytest.mark.slow
def test_a_text_made_of_private_values_is_reported_as_different(root: Path) -> None:
    said, code = record(root, "shouted", "--where", "id = 3")
    (test,) = own_tests(root, "shouted")

    assert code == 0
    assert "The query computes with masked values" in said
    assert test.expect.rows == ({"id": 3, "loud": "MASKED_1"},)


@pytest.mark.long
@pytest.mark.slow
def test_other_text_in_the_file_stays_and_names_get_the_next_number(root: Path) -> None:
    before = (root / "models/day.yml").read_text()
    record(root, "day", "--limit", "1")
    record(root, "day", "--limit", "1")
    text = (root / "models/day.yml").read_text()

    assert text.startswith(before.removesuffix("# the end\n"))
    assert text.endswith("# the end\n")
    assert [test.name for test in own_tests(root, "day")] == ["day_recorded", "day_recorded_2"]


@pytest.mark.slow
def test_an_edited_model_is_reported_as_different_from_its_published_rows(root: Path) -> None:
    broken.write(root, {"models/day.sql": DAY.replace("sum(s.amount)", "cast(max(s.amount) as decimal(20, 2))")})
    said, _ = record(root, "day", "--where", "shop = 'a'")

    assert "differ from the published ones" in said
    assert own_tests(root, "day")


REFUSED = {
    ("sales",): "sales lands a source, whose lines aren't stored",
    ("day", "--where", "shop = 'z'"): "day has no row where shop = 'z' at tick 1",
    ("day", "--where", "prize > 1"): "unknown column `prize`",
    ("day", "--where", "1 = 1; drop table day"): "--where",
    ("day", "--where", "shop in (select 'a')"): "a subquery",
    ("day", "--name", "a b"): "invalid name `a b` for a unit test",
    ("dya",): "matches nothing",
    ("day", "--profile", "nope"): "nope",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_an_impossible_recording_is_rejected_without_a_write(root: Path, words: tuple[str, ...]) -> None:
    before = {p: p.read_text() for p in (root / "models").iterdir()}
    said, code = record(root, *words)

    assert REFUSED[words] in said
    assert code == 2
    assert {p: p.read_text() for p in (root / "models").iterdir()} == before


@pytest.mark.slow
def test_a_name_in_use_is_rejected(root: Path) -> None:
    record(root, "day", "--name", "mine")
    said, code = record(root, "shouted", "--name", "mine")

    assert (code, "already has a unit test `mine`" in said) == (2, True)


VALUES: list[Any] = [
    "x", 7, 2.5, Decimal("12.50"), AS_OF, AS_OF.date(), b"\x00", True, None, ["x", None], {"a": "x", "b": [7]},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_masks_preserve_type_and_equality(value: Any) -> None:
    masks = Masks()
    first = masks.value(value)

    assert type(first) is type(value)
    assert masks.value(value) == first
    assert value is None or first != value


def test_masks_of_different_values_differ() -> None:
    masks = Masks()

    assert len({masks.value(text) for text in ("a", "b", "c", "a")}) == 3
    assert masks.value(7) == masks.value(Decimal("7"))
