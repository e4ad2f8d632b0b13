"""Coverage of models by unit tests: columns and branches of queries. Shell: DuckDB, target/coverage.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlrun.errors import SqlrunError
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared
from sqlrun.project import Expected, UnitTest
from sqlrun.runtime import atomic_files
from sqlrun.test_definitions.queries import Queries
from sqlrun.unit_tests.output.branches import Branch, Fork, asking, forks
from sqlrun.unit_tests.output.covered import Covered, as_json, compared
from sqlrun.unit_tests.project_tests import by_name, run_queries

FILE = "target/coverage.json"
# With no expected rows, every row is reported as unexpected.
NOTHING = Expected(rows=())

Numbered = tuple[tuple[int, Fork], ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """Forks of a query to probe at one moment of a test, and the probing query."""

    query: Query
    test: UnitTest
    forks: Numbered
    asked: Query


def measure(prepared: Prepared, models: Iterable[str], tests: Sequence[UnitTest]) -> tuple[Covered, ...]:
    """Return for each model which columns its tests compare and which branches their rows took."""
    wanted = frozenset(models)
    return tuple(
        _model(prepared, query, [test for test in tests if test.model == query.name and not test.macro])
        for query in prepared.queries
        if query.name in wanted
    )


def write(root: Path, found: Iterable[Covered]) -> None:
    """Write the coverage as JSON, atomically."""
    atomic_files.put(root / FILE, json.dumps(as_json(found), indent=2, ensure_ascii=False) + "\n")


def _model(prepared: Prepared, query: Query, tests: Sequence[UnitTest]) -> Covered:
    known = forks(query)
    taken, unknown = _probed(prepared, list(_jobs(prepared, query, tests, known)))
    unknown |= {branch for fork in known if fork.probe is None for branch in fork.branches}
    return Covered(
        query.name,
        query.rendered.model.contract_file,
        len(tests),
        tuple((name, any(name in compared(test) for test in tests)) for name in query.columns),
        tuple(
            (branch, branch in taken, branch in unknown - taken)
            for branch in dict.fromkeys(branch for fork in known for branch in fork.branches)
        ),
    )


def _jobs(prepared: Prepared, query: Query, tests: Sequence[UnitTest], known: Sequence[Fork]) -> Iterator[_Job]:
    """Return the jobs to run: all branches of the query, in each test, at each of its moments."""
    whole = _numbered(known)
    everything = asking(query, whole) if whole else None
    seen = Queries(prepared.project, by_name(prepared))
    for test in tests:
        try:
            own = seen.of(replace(test, cte=""))[query.name]
        except SqlrunError:
            continue  # the test itself reports the error
        # A test with its own vars has its own query; branches are the same if their places and descriptions are.
        parts = whole if own is query else _numbered(forks(own))
        probe = everything if own is query else asking(own, parts) if parts else None
        if probe is not None:
            yield from (_Job(own, moment, parts, probe) for moment in _moments(test))


def _numbered(branches: Sequence[Fork]) -> Numbered:
    return tuple((number, fork) for number, fork in enumerate(branches) if fork.probe is not None)


def _moments(test: UnitTest) -> Iterator[UnitTest]:
    """Yield a test for each moment at which it compares the table: first, and after each of its steps."""
    yield replace(test, cte="", expect=NOTHING, steps=())
    for count in range(1, len(test.steps) + 1):
        steps = [replace(step, expect=Expected()) for step in test.steps[:count]]
        steps[-1] = replace(steps[-1], expect=NOTHING)
        yield replace(test, cte="", expect=Expected(), steps=tuple(steps))


def _probed(prepared: Prepared, jobs: Sequence[_Job]) -> tuple[set[Branch], set[Branch]]:
    """Return the taken and the unknown branches; a job that fails is probed again fork by fork."""
    taken: set[Branch] = set()
    unknown: set[Branch] = set()
    again: list[_Job] = []
    results = run_queries(prepared, [(job.test, job.asked) for job in jobs])
    for job, result in zip(jobs, results, strict=True):
        by_number = dict(job.forks)
        if result.status == "pass":
            continue
        if result.status == "fail" and result.compared == "rows":
            for (text,) in result.unexpected:
                fork, colon, branch = text.partition(":")
                if colon:
                    taken.add(by_number[int(fork)].branches[int(branch)])
        elif len(job.forks) > 1:
            again += [replace(job, forks=(one,), asked=asking(job.query, [one])) for one in job.forks]
        else:
            unknown.update(branch for _, fork in job.forks for branch in fork.branches)
    if again:
        more, less = _probed(prepared, again)
        return taken | more, unknown | less
    return taken, unknown
