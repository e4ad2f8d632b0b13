"""Coverage as lines and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlrun.project import UnitTest
from sqlrun.report.log_lines import Line
from sqlrun.runtime.text_table import aligned, escaped
from sqlrun.unit_tests.output.branches import Branch
from sqlrun.unit_tests.output.differences import cut

MOST = 50
LONGEST = 80


@dataclass(frozen=True, slots=True)
class Covered:
    """Coverage of a model: number of tests, compared columns, and branches with whether they are taken or unknown."""

    model: str
    file: str
    tests: int
    columns: tuple[tuple[str, bool], ...]
    branches: tuple[tuple[Branch, bool, bool], ...]

    @property
    def done(self) -> int:
        """Return the number of columns and branches that tests reach."""
        return sum(done for _, done in self.columns) + sum(taken for _, taken, _ in self.branches)

    @property
    def all(self) -> int:
        """Return the number of columns and branches, including unmeasurable ones."""
        return len(self.columns) + len(self.branches)


def share(found: Iterable[Covered]) -> float:
    """Return the share of covered columns and branches in percent; 100 if there are none."""
    found = list(found)
    total = sum(one.all for one in found)
    return 100 * sum(one.done for one in found) / total if total else 100.0


def compared(test: UnitTest) -> frozenset[str]:
    """Return the output columns that a test compares with a value other than NULL."""
    if test.cte or test.macro:
        return frozenset()
    expected = [test.expect, *(step.expect for step in test.steps)]
    rows = [row for one in expected for part in (one.rows, one.came, one.left) for row in part or ()]
    return frozenset(name for row in rows for name, value in row.items() if value is not None)


def lines(found: Sequence[Covered]) -> list[Line]:
    """Return a table of the coverage by model, then the columns and branches that no test reaches."""
    cells = [
        (
            escaped(one.model),
            f"{one.tests}",
            f"{sum(done for _, done in one.columns)} of {len(one.columns)}",
            f"{sum(taken for _, taken, _ in one.branches)} of {len(one.branches)}",
            f"{share([one]):.0f} %",
        )
        for one in found
    ]
    cells.append(("all", f"{sum(one.tests for one in found)}", "", "", f"{share(found):.0f} %"))
    table = aligned(("model", "tests", "columns", "branches", "covered"), cells, "<>>>>")
    uncovered = [text for one in found for text in _uncovered(one)]
    missed = [Line(f"  {escaped(text)}", style="detail") for text in uncovered[:MOST]]
    if len(uncovered) > MOST:
        missed.append(Line(f"  and {len(uncovered) - MOST:,} more in target/coverage.json", style="detail"))
    return [Line(""), *(Line(text) for text in table), *([Line("")] if missed else []), *missed]


def _uncovered(one: Covered) -> Iterator[str]:
    if not one.tests:
        yield f"{one.file} no test"
        return
    yield from (f"{one.file} column `{name}` is compared in no test" for name, done in one.columns if not done)
    for branch, taken, unknown in one.branches:
        if unknown:
            yield f"{branch.place} {cut(branch.what, LONGEST)} not measured"
        elif not taken:
            yield f"{branch.place} {cut(branch.what, LONGEST)} {branch.never}"


def as_json(found: Iterable[Covered]) -> dict[str, object]:
    """Return the coverage in the layout of target/coverage.json."""
    found = list(found)
    models = [
        {
            "model": one.model,
            "tests": one.tests,
            "percent": round(share([one]), 1),
            "columns": [{"name": name, "compared": done} for name, done in one.columns],
            "branches": [
                {
                    "place": str(branch.place),
                    "what": branch.what,
                    "if_not": branch.never,
                    "status": "covered" if taken else "not measured" if unknown else "not covered",
                }
                for branch, taken, unknown in one.branches
            ],
        }
        for one in found
    ]
    return {"percent": round(share(found), 1), "models": models}
