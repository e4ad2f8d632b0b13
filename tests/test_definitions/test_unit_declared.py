"""`unit_tests:` as values; tests/cases/errors has cases of invalid ones too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlrun import project_files
from sqlrun.errors import Problem
from sqlrun.load import load
from sqlrun.project import Change, Expected, UnitTest
from tests.support.broken import contract, models, write

SOURCES = """sources:
  - name: shop
    tables:
      - name: events
        path: landing
        columns:
          - {name: id, data_type: int, description: d, nulls: false}
          - {name: amount, data_type: "decimal(10,2)", description: d}
          - {name: at, data_type: timestamp, description: d}
"""
COLUMNS = ("id int", "amount decimal(10,2)", "at timestamp")


def read(tmp_path: Path, tests: str, files: Mapping[str, str] | None = None) -> load.Loaded:
    """Return a loaded project with a landing model `events`, a model `sums` over it, and tests of the latter."""
    grain = contract("events", *COLUMNS, extra="    grain: [id]")
    own = contract("sums", *COLUMNS, "items array<struct<a:int,b:string>>", extra="    grain: [id]")
    queries = {"events": "select * from {{ source('shop', 'events') }}", "sums": "select * from {{ ref('events') }}"}
    made = {**models(queries), "models/events.yml": grain, "models/_sources.yml": SOURCES}
    return project_files.read(
        write(tmp_path, {**made, "models/sums.yml": f"{own}\nunit_tests:\n{tests}", **(files or {})})
    )


def test_of(tmp_path: Path, tests: str, files: Mapping[str, str] | None = None) -> UnitTest:
    loaded = read(tmp_path, tests, files)
    assert loaded.problems == (), "\n".join(map(str, loaded.problems))
    return next(model for model in loaded.project.models if model.name == "sums").unit_tests[0]


def problems_of(tmp_path: Path, tests: str, files: Mapping[str, str] | None = None) -> list[Problem]:
    return list(read(tmp_path, tests, files).problems)


test_of.__test__ = False  # type: ignore[attr-defined]


def test_steps_are_parsed_in_order(tmp_path: Path) -> None:
    test = test_of(
        tmp_path,
        """  - name: a
    model: sums
    as_of: "2026-01-01 12:00:00"
    given: [{input: ref('events'), rows: [{id: 1, amount: 2.50}]}]
    expect: {rows: [{id: 1}]}
    then:
      - as_of: "2026-01-01 12:05:00"
        changes:
          - input: ref('events')
            came: [{id: 2}]
            left: [{id: 1}]
            updated: [{id: 2, amount: 3}]
          - {input: "source('shop','events')", lines: ['{"id": 1}', '{']}
        expect: {rows: [{id: 2}], changes: {came: [{id: 2}]}, quarantined: [{_raw: "{"}]}
      - expect: {changes: {}}
      - changes:
          - input: ref('events')
            format: csv
            came: |
              id,amount
              4,
""",
    )
    first, second, third = test.steps

    assert (test.as_of, first.as_of, second.as_of) == ("2026-01-01 12:00:00", "2026-01-01 12:05:00", "")
    assert [change.input for change in first.changes] == ["ref('events')", "source('shop', 'events')"]
    assert first.changes[0].came == ({"id": 2},)
    assert (first.changes[0].left, first.changes[0].updated) == (({"id": 1},), ({"id": 2, "amount": 3},))
    assert first.changes[1] == Change("source('shop', 'events')", first.changes[1].place, lines=('{"id": 1}', "{"))
    assert first.expect == Expected(({"id": 2},), "", ({"id": 2},), (), ({"_raw": "{"},))
    assert (second.changes, second.expect) == ((), Expected(came=(), left=()))
    assert (third.changes[0].came, third.expect) == (({"id": "4", "amount": None},), Expected())


def test_csv_rows_distinguish_null_from_empty_text(tmp_path: Path) -> None:
    test = test_of(
        tmp_path,
        '''  - name: a
    model: sums
    expect:
      format: csv
      rows: |
        items,id,amount

        "[{""a"": 1, ""b"": """"}]",1,2.50
        ,2,
''',
    )

    assert test.expect.rows == (
        {"items": [{"a": 1, "b": ""}], "id": "1", "amount": "2.50"},
        {"items": None, "id": "2", "amount": None},
    )
