"""Every `.case` file: after each step the maintained tables equal the whole query, in DuckDB and by the reference
evaluator in plain Python, and the change is the expected one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from sqlrun.errors import ProjectError
from tests.support.case_files import Case, read
from tests.support.memory import Memory, Table, View
from tests.support.playing import play

FOLDER = Path(__file__).parents[1] / "cases"
# Known failures with their reasons. A case that passes again is an error here, so remove it from this list.
FAULTS: dict[str, str] = {}


def marked(case: Case, file: str, number: int) -> ParameterSet:
    """Return a parameter for a case; `make test-fast` runs the first case of each file."""
    marks = [pytest.mark.xfail(reason=FAULTS[case.name], strict=True)] if case.name in FAULTS else []
    return pytest.param(case, id=f"{file}: {case.name}", marks=[*marks, pytest.mark.slow] if number else marks)


CASES = [
    marked(case, path.stem, number)
    for folder in ("incremental", "found")
    for path in sorted((FOLDER / folder).glob("*.case"))
    for number, case in enumerate(read(path))
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    """The incremental result equals the whole query after every step."""
    if case.refuse:
        with pytest.raises(ProjectError) as caught:
            Memory(case.tables, case.views)

        assert case.refuse in {p.code for p in caught.value.problems}, caught.value
        return
    play(case, Memory(case.tables, case.views))


def test_sums_of_a_whole_table_are_merged() -> None:
    """An additive aggregate of a whole table reads changes alone, and so does its hidden table."""
    t = Table("t", (("k", "int"), ("b", "int")), ("k",))
    stages = Memory([t], [View("v", "select sum(b) as s, count(*) as n from t")]).compiled[-1].stages

    assert [(stage.method, stage.strategy) for stage in stages] == [("additive", "merge"), ("rows", "merge")]
