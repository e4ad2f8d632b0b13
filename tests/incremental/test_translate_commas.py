"""Comma-separated tables: the join that each equality of WHERE moves to, and where it must not move."""

from __future__ import annotations

import pytest
import sqlglot

from sqlrun.incremental.translate.comma_joins import joined

PAIRS = {
    "an equality joins": (
        "select * from a, b where a.x = b.x and a.y > 1",
        "SELECT * FROM a JOIN b ON a.x = b.x WHERE a.y > 1",
    ),
    "a table that nothing ties yet waits": (
        "select * from a, b, c where a.x = c.x and b.y = c.y",
        "SELECT * FROM a JOIN c ON a.x = c.x JOIN b ON b.y = c.y",
    ),
    "two equalities for one join": (
        "select * from a, b, c where a.x = b.x and b.y = c.y and a.z = c.z",
        "SELECT * FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y AND a.z = c.z",
    ),
    "what no equality ties stays a cross join": (
        "select * from a, b where a.x > b.x",
        "SELECT * FROM a CROSS JOIN b WHERE a.x > b.x",
    ),
    "every branch of OR has it": (
        "select * from a, b where (a.x = b.x and a.y = 1) or (a.y = 2 and a.x = b.x)",
        "SELECT * FROM a JOIN b ON a.x = b.x WHERE (a.x = b.x AND a.y = 1) OR (a.y = 2 AND a.x = b.x)",
    ),
    "one branch of OR has not": (
        "select * from a, b where (a.x = b.x and a.y = 1) or a.y = 2",
        "SELECT * FROM a CROSS JOIN b WHERE (a.x = b.x AND a.y = 1) OR a.y = 2",
    ),
    "a written join keeps its condition, and comes after the tables that it names": (
        "select * from a cross join b join c on b.y = c.y where a.x = c.x",
        "SELECT * FROM a CROSS JOIN b JOIN c ON b.y = c.y AND a.x = c.x",
    ),
    "a left join stays where it is": (
        "select * from a left join b on a.x = b.x, c where b.y = c.y",
        "SELECT * FROM a LEFT JOIN b ON a.x = b.x JOIN c ON b.y = c.y",
    ),
    "the rows that a full join adds are for WHERE to judge": (
        "select * from a cross join b full join c on a.x = c.x where a.y = b.y",
        "SELECT * FROM a CROSS JOIN b FULL JOIN c ON a.x = c.x WHERE a.y = b.y",
    ),
    "the outer row of a subquery is no table of its own": (
        "select * from a where exists (select 1 from b, c where b.x = c.x and b.y = a.y)",
        "SELECT * FROM a WHERE EXISTS(SELECT 1 FROM b JOIN c ON b.x = c.x WHERE b.y = a.y)",
    ),
    "an equality with a subquery stays": (
        "select * from a, b where a.x = b.x and a.y = (select max(c.y) from c)",
        "SELECT * FROM a JOIN b ON a.x = b.x WHERE a.y = (SELECT MAX(c.y) FROM c)",
    ),
}


@pytest.mark.parametrize(("query", "expected"), PAIRS.values(), ids=PAIRS)
def test_equalities_find_their_joins(query: str, expected: str) -> None:
    """Each moves to the first join at which both its tables are in scope."""
    assert joined(sqlglot.parse_one(query, read="databricks")).sql("databricks") == expected
