"""A tick's times replace the parameters of a statement, and nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import duckdb
import pytest
import sqlglot

from sqlrun.engine_api import Append, Dialect, Load, Merge, Overwrite, Replace
from sqlrun.incremental import clocks
from sqlrun.transpile.parameters import MARKS, bound, filled, named, timestamp
from sqlrun.transpile.writer import expression, identifier, string

NOON = datetime(2026, 1, 31, 12, 0, 0, 7, tzinfo=timezone.utc)
TIMES = {"as_of": NOON, "previous": NOON - timedelta(hours=1)}
# Texts that look like a parameter but aren't one.
ELSEWHERE: dict[Dialect, list[str]] = {
    "duckdb": [
        "'$as_of'", "'it''s $as_of'", '"$as_of"', '"a""$as_of"', "/* $as_of */ 1", "x$as_of", "$as_of_day_2",
        "1 -- $as_of", "e'\\' $as_of'", "'\\'", "date'2026-01-01\\'", "$as_ofs",
    ],
    "spark": [
        "':as_of'", "'it\\'s :as_of'", '"say \\":as_of"', "`:as_of`", "`a``:as_of`", "/* :as_of */ 1", "a::as_of",
        "1 -- :as_of", "r'\\'", "':as_of\\\\'", ":as_of_day_2",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("dialect", "text"), [(d, text) for d, texts in ELSEWHERE.items() for text in texts])
def test_only_parameters_are_replaced(dialect: Dialect, text: str) -> None:
    time = timestamp("previous", dialect)
    literal = filled(time, TIMES, dialect)

    assert filled(text, TIMES, dialect) == text
    assert not named(text, dialect)
    assert filled(f"{text}\n, {time}, {text}\n", TIMES, dialect) == f"{text}\n, {literal}, {text}\n"


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_what_the_writer_quotes_is_a_token(dialect: Dialect) -> None:
    """For any content of a text or a name."""
    for inside in ("'", '"', "`", "\\", "--", "/*", "*/", "$$", "''", "\\'", "e'", "\n"):
        for text in (f"{inside}{MARKS[dialect]}as_of", f"{MARKS[dialect]}as_of{inside}", inside):
            quoted = f"{string(text, dialect)}, {identifier(text, dialect)}"
            assert filled(f"{quoted}, {MARKS[dialect]}as_of", TIMES, dialect).startswith(f"{quoted}, timestamp")


def test_each_form_of_a_time() -> None:
    text = "$as_of, $as_of_text, $as_of_day, $previous"
    day, hour = "2026-01-31", "12:00:00.000007"

    assert filled(text, TIMES, "duckdb") == (
        f"timestamptz '{day} {hour}+00', '{day} {hour}+00:00', '{day}', timestamptz '{day} 11:00:00.000007+00'"
    )
    assert filled(":as_of, :as_of_text", TIMES, "spark") == f"timestamp '{day} {hour}Z', '{day} {hour}+00:00'"


def test_a_time_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="previous"):
        filled("$previous", {"as_of": NOON}, "duckdb")


def test_parameters_are_replaced_in_texts_but_not_in_names() -> None:
    time, literal = "$as_of", filled("$as_of", TIMES, "duckdb")
    pairs = ((time, time),)
    merge = Merge(time, (time,), (time,), pairs, pairs, time, time, time)
    full = Merge(literal, (time,), (time,), ((time, literal),), ((time, literal),), literal, literal, literal)

    assert bound(Append(time), TIMES, "duckdb") == Append(literal)
    assert bound(Replace(time), TIMES, "duckdb") == Replace(literal)
    assert bound(Overwrite(time, time), TIMES, "duckdb") == Overwrite(literal, literal)
    assert bound(merge, TIMES, "duckdb") == full
    assert bound(Load(((time,),)), TIMES, "duckdb") == Load(((time,),))


def test_the_engine_reads_the_same_times() -> None:
    """DuckDB also accepts the statement unchanged: the parameters are valid in its own syntax."""
    text = "select $as_of as a, cast($previous_text as timestamptz) as b, cast($as_of_day as date) as c, '$as_of' as d"
    values = {"as_of": NOON, "previous_text": TIMES["previous"].isoformat(), "as_of_day": "2026-01-31"}
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        own = connection.execute(text, values).fetchall()
        assert connection.execute(filled(text, TIMES, "duckdb")).fetchall() == own


@pytest.mark.parametrize(("word", "kind"), [("timestamp", "TIMESTAMPTZ"), ("date", "DATE")])
def test_a_time_is_cast_like_a_text_literal(word: str, kind: str) -> None:
    """No test of its runtime type, so that DuckDB knows the time while it plans."""
    tree = clocks.at(sqlglot.parse_one(f"a > current_{word}()", read="databricks"), "as_of")

    assert "CAST('2026-01-31" in (text := filled(expression(tree, "duckdb"), TIMES, "duckdb"))
    assert text.startswith("a > CAST(") and text.endswith(f" AS {kind})")
