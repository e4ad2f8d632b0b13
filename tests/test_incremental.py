"""Every `.case` file: after each step the kept tables equal the whole query, in DuckDB and by the reference evaluator
in plain Python, and the change is the expected one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sqlrun.errors import ProjectError
from tests import reference
from tests.case_files import Case, read
from tests.evaluator import stable
from tests.memory import Memory, Table, View

FOLDER = Path(__file__).parent / "cases" / "incremental"
CASES = [
    pytest.param(case, id=f"{path.stem}: {case.name}") for path in sorted(FOLDER.glob("*.case")) for case in read(path)
]


def shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, tuple):
        fields = all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) for v in value)
        if value and fields:
            return "{" + ", ".join(shown(v[1]) for v in value) + "}"
        return "[" + ", ".join(shown(v) for v in value) + "]"
    if hasattr(value, "strftime") and hasattr(value, "hour"):
        return value.strftime("%Y-%m-%d %H:%M")
    return str(value)


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    """The incremental result equals the whole query after every step."""
    if case.refuse:
        with pytest.raises(ProjectError) as caught:
            Memory(case.tables, case.views)

        assert case.refuse in {p.code for p in caught.value.problems}, caught.value
        return
    memory = Memory(case.tables, case.views)
    name = memory.compiled[-1].name
    if case.kept:
        assert [s.method for s in memory.compiled[-1].stages] == case.kept.split(), memory.compiled[-1].own.reason
    for step in case.steps:
        before = memory.kept(name)
        for table, rows in step.changes:
            memory.change(table, rows)

        memory.step(step.as_of)

        after = memory.kept(name)
        assert after == memory.oracle(name, step.as_of), f"{case.place}, step at line {step.line}"
        assert stable(after) == reference.answer(memory, name, step.as_of), f"{case.place}, step at line {step.line}"
        got = Counter({r: after[r] - before[r] for r in before | after if after[r] != before[r]})
        texts = Counter()
        for values, weight in got.items():
            texts[tuple(shown(v) for v in values)] += weight
        wanted: Counter[tuple[str, ...]] = Counter()
        for weight, values in step.expected:
            wanted[tuple("NULL" if v is None else v for v in values)] += weight
        assert texts == wanted, f"{case.place}, step at line {step.line}"


def test_sums_of_a_whole_table_are_merged() -> None:
    """A table of one row that adds up reads changes alone, its hidden table too."""
    t = Table("t", (("k", "int"), ("b", "int")), ("k",))
    stages = Memory([t], [View("v", "select sum(b) as s, count(*) as n from t")]).compiled[-1].stages

    assert [(stage.method, stage.strategy) for stage in stages] == [("additive", "merge"), ("rows", "merge")]
