"""One random example: a case of tables, models and steps, and how it is played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import duckdb
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sqlrun.errors import ProjectError
from tests.fuzz.queries import views
from tests.fuzz.schemas import scripts, tables
from tests.support import evaluator, reference
from tests.support.case_files import Case, Step
from tests.support.evaluator import stable
from tests.support.memory import Bag, Memory, connect

# Faults that are known, by their message, and the case in cases/found that shows each. What is mended leaves the list.
KNOWN = {
    "as_of must be a literal before a query reaches an engine": "clock.case",
    'Values list "s" does not have a column named': "additive.case",
}


@st.composite
def cases(draw: Any, most: int = 4) -> Case:
    """Draw tables, models and a script."""
    made = draw(tables())
    queries = draw(views(made))
    return Case("found by fuzzing", "", made, queries, steps=draw(scripts(made, most)))


@dataclass
class Statistics:
    """What became of the examples: by method, by refusal, by what the evaluator doesn't know."""

    methods: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    full: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    examples: int = 0

    def count(self, memory: Memory) -> None:
        """Count how a case's tables are kept."""
        for model in memory.compiled:
            for stage in model.stages:
                self.methods[stage.method] += 1
                if stage.method == "full":
                    self.full[stage.reason.code] += 1

    def add(self, other: Statistics) -> None:
        """Add the counts of other examples."""
        self.examples += other.examples
        for mine, theirs in zip(self.counters(), other.counters(), strict=True):
            mine.update(theirs)

    def counters(self) -> tuple[Counter[str], ...]:
        return self.methods, self.refused, self.unknown, self.full, self.known

    def text(self) -> str:
        """Write the counts, the most frequent first."""
        lines = [f"{self.examples} examples, {sum(self.refused.values())} refused"]
        for word, counts in (
            ("kept by", self.methods),
            ("full because", self.full),
            ("refused for", self.refused),
            ("not evaluated for", self.unknown),
            ("known faults met", self.known),
        ):
            listed = ", ".join(f"{name} {count}" for name, count in counts.most_common())
            lines.append(f"{word}: {listed or 'none'}")
        return "\n".join(lines)


@lru_cache(maxsize=1)
def shared() -> duckdb.DuckDBPyConnection:
    """Connect once: that takes longer than an example's own tables."""
    return connect()


def compiled(case: Case) -> Memory:
    """Compile a case in a schema of its own."""
    connection = shared()
    connection.execute("drop schema if exists fuzz cascade; create schema fuzz; set schema = 'fuzz'")
    return Memory(case.tables, case.views, connection)


def made(case: Case, statistics: Statistics) -> Memory | None:
    """Compile a case; None where the compiler refuses it, which is counted."""
    statistics.examples += 1
    try:
        memory = compiled(case)
    except ProjectError as error:
        statistics.refused[error.problems[0].code] += 1
        return None
    statistics.count(memory)
    return memory


def kept_models(memory: Memory) -> list[str]:
    return [model.name for model in memory.compiled if not model.is_view]


def play(case: Case, memory: Memory, statistics: Statistics, *, evaluated: bool, whole: int = 0) -> dict[str, Bag]:
    """Play a case: after each step every kept table equals the whole query; give the tables at the end.

    `evaluated` asks the evaluator in plain Python too; every `whole`th step computes tables whole.
    """
    at_end: dict[str, Bag] = {}
    for number, step in enumerate(case.steps, 1):
        for table, rows in step.changes:
            memory.change(table, rows)

        memory.step(step.as_of, whole=bool(whole) and number % whole == 0)

        for name in kept_models(memory):
            kept, full = stable(memory.kept(name)), stable(memory.oracle(name, step.as_of))
            assert kept == full, f"step {number}, {name}: {kept - full} too much, {full - kept} missing"
            at_end[name] = kept
            if evaluated:
                wanted = _evaluated(memory, name, step, statistics)
                assert wanted is None or kept == wanted, (
                    f"step {number}, {name}, evaluator: {kept - wanted} too much, {wanted - kept} missing"
                )
    return at_end


def _evaluated(memory: Memory, name: str, step: Step, statistics: Statistics) -> Bag | None:
    try:
        return reference.answer(memory, name, step.as_of)
    except evaluator.Unknown as unknown:
        statistics.unknown[str(unknown).split(":")[0][:60]] += 1
        return None


Check = Callable[[Case, Statistics], None]


def check(case: Case, statistics: Statistics) -> None:
    """Hold one example to the whole query, one in four to the evaluator too; some ticks compute tables whole."""
    memory = made(case, statistics)
    if memory is not None:
        play(case, memory, statistics, evaluated=statistics.examples % 4 == 0, whole=statistics.examples % 3 * 2)


@dataclass
class Failed(Exception):
    """The smallest failing example that was found, and how it failed."""

    case: Case
    error: BaseException


def search(
    number: int, examples: int, checked: Check, statistics: Statistics, most: int = 4, *, shrink: bool = True
) -> None:
    """Try so many random examples from a seed; raise `Failed` with the smallest failing one.

    `shrink` False: with the first one, where each example takes seconds.
    """
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    smallest: list[Failed] = []

    @seed(number)
    @settings(
        max_examples=examples, deadline=None, database=None, print_blob=False, phases=phases,
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(cases(most))
    def run(case: Case) -> None:
        try:
            checked(case, statistics)
        except Exception as error:
            fault = next((case for message, case in KNOWN.items() if message in str(error)), None)
            if fault is not None:
                statistics.known[fault] += 1
                return
            smallest[:] = [Failed(case, error)]
            raise

    try:
        run()
    except Exception:
        if not smallest:
            raise
        raise smallest[0] from smallest[0].error
