"""Raw lines of a source through a landing model, in a unit test: rows and quarantined lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broken import contract
from tests.test_definitions.test_unit_queries import FILES, prepared, refusal, results

TYPED = contract("orders", "id int", "amount decimal(10,2)", "tags array<string>").replace(
    "{name: id, data_type: 'int', ", "{name: id, data_type: 'int', nulls: false, "
)
CHECKS = """expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, max_value: 1000}
    on_fail: quarantine
    description: Nobody spends that much.
"""


def run(folder: Path, test: str) -> list[str]:
    """Run the test of the landing model `orders`; return the differences, one row in each line."""
    project = prepared(folder, "", files={"models/orders.yml": f"{TYPED}unit_tests:\n{test}", **_checks()})
    found = results(project)[0]
    rows = [f"- {' | '.join(row)}" for row in found.missing] + [f"+ {' | '.join(row)}" for row in found.unexpected]
    return [found.status, *([found.message] if found.message else []), *rows]


def _checks() -> dict[str, str]:
    return {"expectations/orders.yml": CHECKS}


LINES = """  - name: a
    model: orders
    given:
      - input: source('shop', 'orders')
        format: lines
        rows:
          - '{"id": 1, "amount": 12.50, "tags": ["a"]}'
          - '{"id": 1, "amount": 12.50, "tags": ["a"]}'
          - ''
          - '{"id": 2, "amount": 0'
          - '{"id": "three", "amount": 1}'
          - '{"amount": 1}'
          - '{"id": 5, "amount": 5000}'
          - '{"id": 6, "amount": 0, "more": "Ärger \\\\ \\"x\\""}'
"""


@pytest.mark.slow
def test_lines_land_or_are_quarantined(tmp_path: Path) -> None:
    expect = """    expect:
      rows: [{id: 1, amount: 12.50, tags: [a]}, {id: 1, amount: 12.50, tags: [a]}]
      quarantined:
        - {_reason: not a JSON object, _raw: '{"id": 2, "amount": 0', id: null}
        - {_reason: "id: not of type int", _raw: '{"id": "three", "amount": 1}'}
        - {_reason: "id: no value", _raw: '{"amount": 1}'}
        - {_reason: "amount: Nobody spends that much.", _raw: '{"id": 5, "amount": 5000}', id: 5}
"""

    assert run(tmp_path, LINES + expect) == ["pass"]


@pytest.mark.slow
def test_a_wrongly_landed_line_is_reported(tmp_path: Path) -> None:
    expect = "    expect: {quarantined: [{id: 5}, {id: null}, {id: null}, {id: 7}]}\n"

    assert run(tmp_path, LINES + expect) == ["fail", "- 7", "+ NULL"]


@pytest.mark.slow
def test_no_lines_are_no_rows(tmp_path: Path) -> None:
    test = """  - name: a
    model: orders
    given: [{input: "source('shop', 'orders')", format: lines, rows: []}]
    expect: {rows: [], quarantined: []}
"""

    assert run(tmp_path, test) == ["pass"]


@pytest.mark.slow
def test_a_text_of_lines_is_split_like_a_file(tmp_path: Path) -> None:
    test = """  - name: a
    model: orders
    given:
      - input: source('shop', 'orders')
        format: lines
        rows: |
          {"id": 1, "amount": 1}

          {"id": 2, "amount": 1}
          {"id": 3, "amount": 'x'}
    expect: {rows: [{id: 1}, {id: 2}], quarantined: [{_raw: "{\\"id\\": 3, \\"amount\\": 'x'}"}]}
"""

    assert run(tmp_path, test) == ["pass"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- '{\"id\": 1, \"amount\": 12.50, \"tags\": [\"a\"]}'\n", "- {\"id\": 1}\n", "a raw line must be a string"),
        ("input: source('shop', 'orders')", "input: ref('sums')", "`lines` for ref('sums'), which is not a source"),
        ("format: lines", "format: line", "invalid `format`: `line`"),
        ("expect: {", "expect: {quarantined: [{reason: x}], ", "unknown column `reason` of orders__quarantine"),
    ],
)  # fmt: skip
def test_invalid_lines_are_reported_at_their_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    test = f"{LINES}    expect: {{rows: []}}\n"
    assert old in test
    files = {"models/orders.yml": f"{FILES['models/orders.yml']}unit_tests:\n{test.replace(old, new, 1)}"}

    assert message in refusal(tmp_path, "", files=files)
