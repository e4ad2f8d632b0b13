"""Parts of a statement: its expanded length, and the parts that are computed before it."""

from __future__ import annotations

import re

import pytest

from sqlrun.engine_api import Append, Merge, Overwrite, Replace
from sqlrun.incremental import parts
from sqlrun.incremental.script import Moment
from sqlrun.incremental.statements import Tick, prepare
from tests.incremental.test_incremental import CASES
from tests.support.case_files import Case
from tests.support.memory import START, Memory

# Each part reads the previous one three times: 3 ** 20 parts.
CHAIN = (
    ("_changes_0", "select 1 as x"),
    *((f"_changes_{n}", " join ".join(["select x from"] + [f"_changes_{n - 1}"] * 3)) for n in range(1, 21)),
)
KEPT = [pytest.param(c.values[0], id=c.id) for c in CASES if not c.values[0].refuse]


def lengths(every: parts.Parts, final: str, chosen: tuple[str, ...]) -> list[int]:
    """Return the expanded size of each statement: those of the chosen parts, and the last one."""
    known: list[str] = []
    found = []
    for name, last in [*((name, f"select * from {name}") for name in chosen), ("", final)]:
        before = tuple((n, "select * from a table" if n in known else body) for n, body in every)
        found.append(parts.written_out(parts.needed(before, last), last))
        known.append(name)
    return found


def test_a_chain_is_split_into_short_statements() -> None:
    final = "select x from _changes_20"
    assert parts.written_out(CHAIN, final) > 3**20

    chosen = parts.first(CHAIN, final, 100)

    assert chosen == tuple(sorted(chosen, key=lambda name: int(name.rsplit("_")[-1])))
    assert len(chosen) <= 10
    assert max(lengths(CHAIN, final, chosen)) <= 101


def test_a_short_statement_stays_whole() -> None:
    assert parts.first(CHAIN[:4], "select x from _changes_3", 41) == ()
    assert parts.first(CHAIN[:4], "select x from _changes_3", 40) != ()


def test_a_statement_that_no_split_shortens_stays_whole() -> None:
    """No part is read twice, or nothing below it can be computed first: no choice shortens it."""
    final = " union all ".join("select x from _old_1" for _ in range(300))

    assert parts.first((("_old_1", "select 1 as x"),), final, 200) == ()


def test_changes_are_computed_rather_than_whole_tables() -> None:
    every = (("_in_1", "select 1"), ("_old_2", "from _in_1"), ("_changes_3", "from _in_1"))
    final = " ".join(["_old_2"] * 6 + ["_changes_3"] * 5)

    assert parts.first(every, final, 20) == ("_changes_3",)


def test_only_parts_that_are_read_remain() -> None:
    every = (("a", "select 1"), ("b", "from a"), ("c", "from a"), ("d", "from c"))

    assert [name for name, _ in parts.needed(every, "from d")] == ["a", "c", "d"]


@pytest.mark.slow
@pytest.mark.parametrize("case", KEPT)
def test_splitting_a_statement_reverses_joining(case: Case) -> None:
    """A model's literals, comments and names may contain anything."""
    for text in statements(case):
        every, final = parts.split(text)

        assert parts.joined(every, final) == text
        assert len({body for _, body in every}) == len(every), "a part is written twice"
        assert not text.startswith("with\n") or every
        assert not re.search(r"^with\n", final)
        *before, last = lengths(every, final, parts.first(every, final, 30))
        assert max(before, default=0) <= 31
        assert last <= parts.written_out(every, final)


def statements(case: Case) -> list[str]:
    """Return the statements of a case for Spark: the first tick, one in which everything changed, a rebuild."""
    memory, found = Memory(case.tables, case.views), []
    for model in memory.compiled:
        for stage in model.stages:
            for fresh, whole in ((True, False), (False, False), (False, True)):
                tick = Tick(Moment(START, START), frozenset(stage.inputs), fresh, whole)
                prepared = prepare(stage, tick, "spark", memory.full(model.name, START))
                match prepared.statement if prepared else None:
                    case Merge(delta=sql) | Append(sql=sql) | Replace(sql=sql):
                        found.append(sql)
                    case Overwrite(sql=sql, partitions=partitions):
                        found += [sql, partitions]
    return found
