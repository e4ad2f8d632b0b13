"""Writes a case as the text of a `.case` file, with the change that each step must bring."""

from __future__ import annotations

import dataclasses
import textwrap
from collections import Counter
from hashlib import sha256
from pathlib import Path

from sqlrun.errors import ProjectError
from tests.fuzz.running import compiled
from tests.support import evaluator, reference
from tests.support.case_files import Case, Row, Step
from tests.support.memory import Bag, Memory, Table, View
from tests.support.playing import change


def text(case: Case, comment: str = "") -> str:
    """Write a case; reading it gives the same case again."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"case {case.name}", *(_table(t) for t in case.tables)]
    for view in case.views:
        lines += [_view(view), *(f"  {line}" for line in textwrap.wrap(view.sql, 110, break_long_words=False))]
    for step in case.steps:
        lines += ["", f"as_of {step.as_of:%Y-%m-%d %H:%M}"]
        for table, rows in step.changes:
            lines += [f"change {table}", *(_row(row) for row in rows)]
        lines += ["expect", *(_row(row) for row in step.expected)]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> str:
    columns = ", ".join(f"{n} {k}{' not null' if n in table.required else ''}" for n, k in table.columns)
    grain = f" grain({', '.join(table.grain)})" if table.grain else ""
    return f"table {table.name}({columns}){grain}{' grows' * table.grows}{' repeats' * table.repeats}"


def _view(view: View) -> str:
    grain = f" grain({', '.join(view.grain)})" if view.grain else ""
    parts = f" partition({', '.join(view.partition_by)})" if view.partition_by else ""
    return f"view {view.name}{grain}{parts}{' inline' if view.materialized == 'view' else ''} as"


def _row(row: Row) -> str:
    weight, values = row
    sign = ("+" if weight > 0 else "-") + (str(abs(weight)) if abs(weight) > 1 else "")
    return f"  {sign} " + " | ".join("NULL" if v is None else v for v in values)


def with_expected(case: Case) -> Case:
    """Fill in the change that each step must bring: the evaluator's answer, or else DuckDB's to the whole query."""
    try:
        memory = compiled(case)
    except ProjectError:
        return case
    before: Bag = Counter()
    steps: list[Step] = []
    for step in case.steps:
        for table, rows in step.changes:
            memory.change(table, rows)
        memory.load()
        after = _answer(memory, step)
        memory.forget()
        expected: list[Row] = [
            (n, tuple(None if v == "NULL" else v for v in r)) for r, n in change(before, after).items()
        ]
        steps.append(dataclasses.replace(step, expected=sorted(expected, key=lambda r: (r[0], repr(r[1])))))
        before = after
    return dataclasses.replace(case, steps=steps)


def _answer(memory: Memory, step: Step) -> Bag:
    name = memory.compiled[-1].name
    try:
        return reference.answer(memory, name, step.as_of)
    except evaluator.Unknown:
        if sum(1 for model in memory.compiled if not model.is_view) > 1:
            raise
        return memory.oracle(name, step.as_of)


def write(case: Case, why: str, folder: Path) -> Path:
    """Write a failing case into a folder, under a name of its own."""
    try:
        case, comment = with_expected(case), why
    except Exception as error:  # the case may be one that the engine doesn't even read
        comment = f"{why}\nWhat to expect is not known: {error}"
    comment = "\n".join(line[:115] for line in comment.splitlines()[:6])
    body = text(case)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"found_{sha256(body.encode()).hexdigest()[:8]}.case"
    path.write_text(text(case, comment))
    return path
