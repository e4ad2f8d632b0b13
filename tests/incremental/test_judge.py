"""Parts of the third judge that work without Spark: its grammar, its reader of rows, its reduction of failures."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from sqlrun.errors import ProjectError
from tests.judge import alone, judging
from tests.judge.grammar import Grammar, Piece, smaller
from tests.judge.judging import Judge, at_end, examples, plain, shrunk

pytestmark = pytest.mark.slow


class Echo:
    """Refuses each query that contains a word."""

    def sql(self, text: str) -> None:
        raise ValueError("refused" if "coalesce" in text else "other")


def test_queries_are_a_function_of_the_seed() -> None:
    texts = [[one.query.text() for one in batch] for _ in range(2) for _, _, batch in examples(3, 6)]

    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 6


def test_most_queries_are_maintained() -> None:
    """A refused query tests nothing."""
    kept = 0
    for _, _, batch in examples(1, 4):
        for one in batch:
            try:
                judging._kept(one, tuple(one.given))
            except (ProjectError, judging._Stopped):
                continue
            kept += 1

    assert kept >= 2


def test_final_rows_are_inserts_minus_deletes() -> None:
    ((made, steps, _),) = list(examples(2, 1))
    came = sum(weight for step in steps for name, rows in step.changes if name == "t0" for weight, _ in rows)

    assert len(at_end(made, steps)["t0"]) == came


def test_reducing_a_query_is_reversible() -> None:
    query = Grammar(random.Random(4)).query()
    before = query.text()
    shorter = [query.text() for _ in smaller(query)]

    assert query.text() == before
    assert any(len(text) < len(before) for text in shorter)


def test_a_failing_example_is_reduced_while_it_still_fails() -> None:
    value = Piece("int", ["coalesce(", Piece("int", ["1 + ", Piece("int", ["2"])]), ", 3)"])
    ((made, steps, _),) = list(examples(2, 1))
    example = judging.Example(made, steps, Piece("", ["select ", value, " as c1 from <t0> as q1"]), [("c1", "int")])
    judge = Judge(Echo())
    verdict = judge.judge(example)

    assert (verdict.word, verdict.why) == ("different", "Spark refuses it: refused")
    assert shrunk(judge, example, verdict.why).query.text() == "select coalesce(1, 3) as c1 from <t0> as q1"


def test_digits_are_compared() -> None:
    assert plain(Decimal("1.50")) != plain(Decimal("1.5"))
    assert plain(0.1 + 0.2) == plain(0.3)
    assert plain(-0.0) == plain(0.0)


@pytest.mark.long
@pytest.mark.slow
def test_no_example_ends_in_a_raw_duckdb_error() -> None:
    """A tick is refused, stopped by a value, or maintained. `--alone` tries more."""
    assert alone.run(random.SystemRandom().randrange(10**6), 20)["broken"] == 0


def test_a_raw_duckdb_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick that a value stops is reported separately."""
    ((_, _, (example,)),) = list(examples(2, 1))
    said = iter(["INTERNAL Error: inequal types", "Conversion Error: out of range"])

    def stop(*_: object) -> None:
        raise judging._Stopped(next(said))

    monkeypatch.setattr(alone, "_kept", stop)

    assert [alone.ending(example)[0] for _ in range(2)] == ["broken", "stopped"]
