"""A small project with unit tests, and commands on it, for the tests of `sqlrun test`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from tests.support import broken

SQL = """\
with paid as (
    select * from {{ ref('lines') }}
    where price > 0
)

select
    order_id,
    cast(sum(price) as bigint) as total,
    case when sum(price) > 10 then 'large' else 'small' end as size
from paid
group by order_id
"""
TESTS = """\
unit_tests:
  - name: prices_are_added
    model: totals
    given:
      - input: ref('lines')
        rows:
          - {order_id: 1, price: 2}
          - {order_id: 1, price: 3}
    expect:
      rows:
        - {order_id: 1, total: FIVE}
  - name: free_lines_are_left_out
    model: totals
    given:
      - input: ref('lines')
        rows:
          - {order_id: 2, price: 0}
    expect: {rows: []}
"""
LINES_TEST = """\
unit_tests:
  - name: a_line_is_a_line
    model: lines
    given: []
    expect:
      rows:
        - {order_id: 1, price: 2}
"""


def project(folder: Path, five: str = "5") -> Path:
    """Write two models: `lines` with one test, and `totals` with two; the first one fails unless `five` is 5."""
    return broken.write(
        folder,
        {
            "models/lines.sql": "select 1 as order_id, cast(2 as int) as price\n",
            "models/lines.yml": broken.contract("lines", "order_id", "price") + LINES_TEST,
            "models/totals.sql": SQL,
            "models/totals.yml": broken.contract(
                "totals", "order_id", "total bigint", "size string", extra="    grain: [order_id]"
            )
            + TESTS.replace("FIVE", five),
        },
    )


def run(root: Path, *arguments: str) -> Result:
    """Run `sqlrun test` in this process."""
    return CliRunner().invoke(main, ["--project-dir", str(root), "test", *arguments])


def said(result: Result) -> list[str]:
    """Return the printed lines, without the time and the dots."""
    lines = result.output.splitlines()
    return [line[10:].partition(" ..")[0].partition("  [")[0] if line[2:3] == ":" else line for line in lines]
