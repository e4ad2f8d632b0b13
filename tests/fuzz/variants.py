"""The same changes, brought in other ways: what the tables are at the end must be the same."""

from __future__ import annotations

import dataclasses

from tests.support.case_files import Case, Row, Step

Changes = list[tuple[str, list[Row]]]


def merged(case: Case) -> Case:
    """Two ticks become one, at the time of the second."""
    steps = []
    for first, second in zip(case.steps[::2], [*case.steps[1::2], None], strict=False):
        if second is None:
            steps.append(first)
        else:
            steps.append(Step(0, second.as_of, [*first.changes, *second.changes]))
    return dataclasses.replace(case, steps=steps)


def split(case: Case) -> Case:
    """Each change comes in a tick of its own, table by table, all at the tick's time."""
    steps = []
    for step in case.steps:
        pieces: list[Changes] = [[(table, rows[:1])] for table, rows in step.changes]
        pieces += [[(table, rows[1:])] for table, rows in reversed(step.changes) if rows[1:]]
        steps += [Step(0, step.as_of, piece) for piece in pieces or [[]]]
    return dataclasses.replace(case, steps=steps)


def reordered(case: Case) -> Case:
    """Within a tick, what comes is told before what leaves, and the last table first."""
    steps = []
    for step in case.steps:
        changes = [(table, sorted(rows, key=lambda row: -row[0])) for table, rows in reversed(step.changes)]
        steps.append(Step(0, step.as_of, changes))
    return dataclasses.replace(case, steps=steps)


def replayed(case: Case) -> Case:
    """After each tick comes an empty one at the same time."""
    steps = [s for step in case.steps for s in (step, Step(0, step.as_of))]
    return dataclasses.replace(case, steps=steps)


def undone(case: Case) -> Case:
    """Before the last tick, the one before it is taken back and brought again."""
    if len(case.steps) < 2 or any(table.grows for table in case.tables):
        return case
    *rest, last = case.steps
    back = [(table, [(-weight, row) for weight, row in reversed(rows)]) for table, rows in reversed(rest[-1].changes)]
    again = [Step(0, rest[-1].as_of, back), Step(0, rest[-1].as_of, rest[-1].changes)]
    return dataclasses.replace(case, steps=[*rest, *again, last])


VARIANTS = {"merged": merged, "split": split, "reordered": reordered, "replayed": replayed, "undone": undone}
