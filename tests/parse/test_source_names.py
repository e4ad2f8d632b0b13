"""Messages name a source as the analyst wrote it, not by the name of its table in compiled SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.errors import ProjectError
from tests.artifacts.test_artifacts import project

SOURCES = """sources:
  - name: web
    tables:
      - name: Hits
        format: json
        path: data
        columns: [{name: id, data_type: int}, {name: cost, data_type: "decimal(5,2)"}]
"""
HITS = "{{ source('web', 'Hits') }}"


def refused(folder: Path, sql: str, contract: str = "models:\n  - name: hits\n") -> str:
    with pytest.raises(ProjectError) as caught:
        project(folder, models__hits_sql=sql, models__hits_yml=contract, models___sources_yml=SOURCES)
    return str(caught.value)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (f"select idd from {HITS}", "unknown column `idd`"),
        (f"select idd from {HITS}", "Columns of source('web', 'Hits'): id, cost. Did you mean `id`?"),
        (f"select idd from {HITS} as h", "Columns of h: id, cost. Did you mean `id`?"),
        ("select idd from {{ source( \"web\",\n'Hits' ) }}", "Columns of source('web', 'Hits'): id, cost."),
        (f"select hits.id from {HITS}", "unknown table `hits` of column `id`"),
        (f"select hits.id from {HITS}", "Give the source an alias: {{ source('web', 'Hits') }} as hits."),
        (f"select id from {HITS} where cost", "the condition `cost` is of type `decimal(5,2)`, not boolean"),
        (f"select id from {HITS} join {HITS} as b on true", "source('web', 'Hits') and b have this column."),
        (f"select id from {HITS} join {HITS} as b on true", "Add the table: b.id."),
        (f"select id from {HITS} join {HITS} on true", "two tables of one FROM are called `source('web', 'Hits')`"),
        (f"select cost * id as cost, id from {HITS}", "Write cast(cost * id as date) as cost at models/hits.sql:1:8"),
        (f"select decode(id, 1, id) as id from {HITS}", "models/hits.sql"),
    ],
)
def test_a_message_names_the_source_as_the_analyst_does(tmp_path: Path, sql: str, says: str) -> None:
    contract = "models:\n  - name: hits\n"
    if " as cost, id" in sql:
        contract += "    config: {contract: {enforced: true}}\n    columns:\n"
        contract += "      - {name: cost, data_type: date}\n      - {name: id, data_type: int}\n"

    said = refused(tmp_path, sql, contract)

    assert says in said and "web__" not in said.lower()


def test_a_name_that_the_analyst_uses_stays(tmp_path: Path) -> None:
    """A query may qualify a column by the name in compiled SQL."""
    said = refused(tmp_path, f"select web__Hits.id, web__Hits.cots from {HITS}")

    assert "unknown column `web__hits.cots`" in said and "Columns of web__hits: id, cost." in said


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("select x.id from {{ ref('raw') }} as x join {{ ref('raw') }} as x on true", ["1:65"]),
        ("select id from {{ ref('raw') }}\njoin {{ ref('raw') }} on true", ["2:14"]),
        ("with x as (select 1 as n)\nselect n from x, (select 2 as m) as x", ["2:37"]),
        ("select n from (select x.id as n from {{ ref('raw') }} x, {{ ref('raw') }} x)", ["1:75"]),
        ("select x from {{ ref('raw') }} as a lateral view explode(array(id)) a as x", ["1:69"]),
    ],
)
def test_two_tables_of_one_name_are_refused(tmp_path: Path, sql: str, places: list[str]) -> None:
    """It was the traceback of an exception of sqlglot."""
    said = refused(tmp_path, sql)

    assert [line.split()[1].split(":", 1)[1] for line in said.splitlines() if line.startswith("SR308")] == places
