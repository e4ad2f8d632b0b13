"""Random lines: DuckDB and a strict reader in plain Python agree on rows, quarantine and reasons.

`make lines N=1000000` tries more; `spark/test_line_fuzz_spark.py` tests Spark.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.incremental.landing import line_grammar, line_pattern, line_types
from sqlrun.transpile import writer as sql
from tests.line_fuzz import judges
from tests.line_fuzz.mutations import Lines
from tests.line_fuzz.sources import SOURCES, sources
from tests.support import strict_reader

LINES = int(os.environ.get("SQLRUN_LINES", "600"))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SOURCES))
def test_duckdb_validates_lines_like_a_strict_reader(name: str) -> None:
    source, counts = sources()[name], judges.Counts()
    data = Lines.of(source, random.Random(name)).file(LINES)
    expected = judges.by_python(source, data)
    assert judges.differences(expected, judges.by_duckdb(source, data, DuckDBEngine()), counts) == []
    assert LINES / 8 < counts.landed < counts.lines, "about every third line lands"


@pytest.mark.long
@pytest.mark.slow
def test_long_and_deep_lines_are_validated_alike() -> None:
    source = replace(sources()["each_type"], columns=sources()["each_type"].columns[:2])
    room = line_grammar.MOST_BYTES - len('{"text":""}')
    deep = ["[" * depth + "]" * depth for depth in (62, 63, 64, 65, 1200)]
    lines = [
        f'{{"text":"{"x" * room}"}}',
        f'{{"text":"{"x" * (room + 1)}"}}',
        f'{{"text":"a","more":[{"1.50," * 200_000}2]}}',
        f'{{"text":"{"é" * 300_000}"}}',
        *(f'{{"text":"a","more":{value}}}' for value in deep),
        f'{{"text":"a","more":[{",".join(["{}"] * 500)}]}}',
    ]
    data = "\n".join(lines).encode()
    expected = judges.by_python(source, data)
    reasons = [said if isinstance(said, str) else None for _, said in (expected[line] for line in lines)]
    assert reasons == [
        None, line_grammar.TOO_LONG, None, None, None, None,
        *(["not a JSON object"] * 3), None,
    ]  # fmt: skip
    assert judges.differences(expected, judges.by_duckdb(source, data, DuckDBEngine()), judges.Counts()) == []


def test_the_usual_form_is_part_of_the_definition() -> None:
    """The strict reader accepts every line that the shortcut accepts, with the same shape and texts."""
    for name, source in sources().items():
        form = sql.string(str(line_pattern.usual(source, "duckdb")), "duckdb")
        lines = strict_reader.lines_of(Lines.of(source, random.Random(name)).file(300))
        listed = ", ".join(sql.string(line, "duckdb") for line in lines if "\0" not in line)
        taken = DuckDBEngine().query(
            f"select l from (select unnest([{listed}]) as l) where regexp_full_match(l, {form})", ()
        )
        reader = judges.reader_of(source)
        judged = [reader.judge(row["l"]) for row in taken.to_pylist()]
        assert len(judged) > 10
        assert not {"not a JSON object", "duplicate key"} & {each.reason for each in judged}


def test_every_type_of_the_definition_has_a_form() -> None:
    for kind in (*line_types.FORMS, "decimal(10,2)", "decimal", "string", "array<struct<a:int>>"):
        assert line_types.known(kind)
    for kind in (
        "binary",
        "map<string,int>",
        "interval",
        "variant",
        "timestamp_ntz",
        "array<map<string,int>>",
        "char(3)",
    ):
        assert not line_types.known(kind)
