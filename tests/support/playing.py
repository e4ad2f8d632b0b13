"""Playing of a case: after each step the maintained table equals both oracles, and the change is as expected."""

from __future__ import annotations

from collections import Counter

from tests.support import reference
from tests.support.case_files import Case
from tests.support.evaluator import stable
from tests.support.memory import Bag, Memory


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


def change(before: Bag, after: Bag) -> Counter[tuple[str, ...]]:
    """Return added and removed rows, values as text."""
    texts: Counter[tuple[str, ...]] = Counter()
    for values in before | after:
        if after[values] != before[values]:
            texts[tuple(shown(v) for v in values)] += after[values] - before[values]
    return texts


def play(case: Case, memory: Memory, beside: Memory | None = None) -> None:
    """Run the steps of a case; `beside` runs the same, and each of its tables must have the same rows."""
    name = memory.compiled[-1].name
    if case.kept:
        assert [s.method for s in memory.compiled[-1].stages] == case.kept.split(), memory.compiled[-1].own.reason
    for step in case.steps:
        before = memory.kept(name)
        for each in (memory, beside) if beside else (memory,):
            for table, rows in step.changes:
                each.change(table, rows)
            each.step(step.as_of)

        after = memory.kept(name)
        if beside:
            assert memory.held() == beside.held(), f"{case.place}, step at line {step.line}"
        assert after == memory.oracle(name, step.as_of), f"{case.place}, step at line {step.line}"
        assert stable(after) == reference.answer(memory, name, step.as_of), f"{case.place}, step at line {step.line}"
        wanted: Counter[tuple[str, ...]] = Counter()
        for weight, values in step.expected:
            wanted[tuple("NULL" if v is None else v for v in values)] += weight
        assert change(before, after) == wanted, f"{case.place}, step at line {step.line}"
