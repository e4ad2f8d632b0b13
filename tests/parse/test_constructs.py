"""Every production of Spark's grammar: maintained over several ticks, or refused with a code and a place."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.probes import Verdict, verdict

pytestmark = pytest.mark.slow

FILE = Path(__file__).parents[1] / "cases" / "constructs.txt"
# Names that sqlrun and sqlglot generate; no message may contain one.
INTERNAL = re.compile(
    r"`_\w+`|\b(?!t__|u__)_(?:col|agg|window|key|order|exploded|subquery|tie|one|at)_?\d*\b|\b[a-z]\w*__[a-z]"
)


def listed() -> list[tuple[str, str]]:
    """Return the queries with their verdicts."""
    lines = (line for line in FILE.read_text().splitlines() if line and not line.startswith("#"))
    return [(said, sql) for said, _, sql in (line.partition("\t") for line in lines)]


def word_of(found: Verdict) -> str:
    """Return a verdict as a word: `kept`, its codes, or what is wrong."""
    if found.wrong:
        return f"WRONG {found.wrong}"
    return " ".join(dict.fromkeys(problem.code for problem in found.problems)) or "kept"


# `make test-fast` tries one of twenty.
CASES = [
    pytest.param(said, sql, id=sql, marks=[pytest.mark.slow] if number % 20 else [])
    for number, (said, sql) in enumerate(listed())
]


@pytest.mark.parametrize(("said", "sql"), CASES)
def test_a_construct_is_maintained_or_refused(said: str, sql: str) -> None:
    """A raw error of DuckDB in a tick is neither."""
    found = verdict(sql)
    if os.environ.get("SQLRUN_WRITE"):
        FILE.write_text(FILE.read_text().replace(f"\n{said}\t{sql}\n", f"\n{word_of(found)}\t{sql}\n"))

    assert word_of(found) == said, found
    for problem in found.problems:
        assert problem.place.line >= 1
        assert problem.message
        assert not INTERNAL.search(f"{problem.message} {problem.hint}"), problem


def test_every_query_has_a_verdict() -> None:
    """The list has verdicts alone, and many of each kind."""
    words = [said for said, _ in listed()]

    assert not [said for said in words if not re.fullmatch(r"kept|SR\d{3}( SR\d{3})*", said)]
    assert words.count("kept") > 200
    assert len([said for said in words if said != "kept"]) > 80
