"""The outcomes of a check, a closed set, and everything that depends on them. Pure.

All code that shows, counts, stores or evaluates outcomes uses this module, so that no two places differ and none
forgets an outcome. It also generates the SQL over stored outcomes and the JavaScript of the served pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from sqlrun.project import CRITICAL, FAIL, INFO, QUARANTINE, Expectation
from sqlrun.runtime.text_table import counted

NEVER_PASS = "It could not be evaluated, which is never a pass"


class Level(Enum):
    """The severity of an outcome. Levels are compared by their `place`, from good to bad."""

    GOOD = (0, "good", "good", "PASS", "")
    NOTE = (1, "info", "plain", "INFO", "note")
    WARNING = (2, "warn", "warning", "WARN", "warning")
    BLOCKS = (3, "bad", "error", "ERROR", "error")

    def __init__(
        self, place: int, css: str, style: Literal["good", "plain", "warning", "error"], tally: str, noun: str
    ) -> None:
        """Take the class on a page, the style and the word of a console summary, and the noun."""
        self.place, self.css, self.tally, self.noun = place, css, tally, noun
        self.style: Literal["good", "plain", "warning", "error"] = style


@dataclass(frozen=True, slots=True)
class Words:
    """The words for an outcome: on a line, as a tag, in a summary, in a sentence about checks, above its details."""

    line: str
    tag: str
    summed: str
    told: str
    detail: str


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of an outcome; `Outcome` documents each of them."""

    level: Level
    words: Words
    dbt: Literal["pass", "warn", "fail", "error", "skipped"]
    junit: Literal["", "skipped", "system-out", "failure", "error"]
    rank: int | None = None
    height: int = 0
    evaluated: bool = True
    stored: str = ""
    css: str = ""


class Outcome(str, Enum):
    """The outcome of a check, in the order in which a summary lists outcomes.

    PASS: the rows are as expected. FAIL: they aren't, and the tick isn't published. WARN: they aren't, which is a
    warning; INFO: the same, as a note. ERROR: the check could not be evaluated, which never counts as a pass. UNJUDGED:
    there is nothing yet to compare with, which is neither good nor bad; it isn't stored in the history. UNMEASURED: a
    measure is missing, which never blocks publishing.
    """

    traits: Traits

    PASS = (
        "pass",
        Traits(Level.GOOD, Words("PASS", "passed", "passed", "passed", ""), "pass", "", rank=0, height=5),
    )
    WARN = (
        "warn",
        Traits(
            Level.WARNING, Words("WARN", "warning", "warned", "warned", "Warning in"), "warn", "system-out",
            rank=2, height=8,
        ),
    )  # fmt: skip
    UNMEASURED = (
        "unmeasured",
        Traits(
            Level.WARNING, Words("WARN", "not measured", "not measured", "warned", "Warning in"), "warn", "system-out",
            rank=2, height=8, evaluated=False, stored="warn", css="warn",
        ),
    )  # fmt: skip
    INFO = (
        "info",
        Traits(
            Level.NOTE, Words("INFO", "note", "noted", "noted", "Note of"), "warn", "system-out",
            rank=1, height=6,
        ),
    )  # fmt: skip
    FAIL = (
        "fail",
        Traits(
            Level.BLOCKS, Words("FAIL", "failed", "failed", "failed", "Failure in"), "fail", "failure",
            rank=3, height=12,
        ),
    )  # fmt: skip
    ERROR = (
        "error",
        Traits(
            Level.BLOCKS, Words("ERROR", "not evaluated", "not evaluated", "could not be evaluated", "Error in"),
            "error", "error", rank=4, height=12, evaluated=False,
        ),
    )  # fmt: skip
    UNJUDGED = (
        "unjudged",
        Traits(
            Level.NOTE, Words("INFO", "not yet evaluated", "not yet evaluated", "not yet evaluated", "Note of"),
            "skipped", "skipped", evaluated=False, css="info",
        ),
    )  # fmt: skip

    def __new__(cls, word: str, traits: Traits) -> Outcome:
        """Return a member that is its word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.traits = traits
        return member

    def __str__(self) -> str:
        """Return the stored word."""
        return self.stored

    def __format__(self, spec: str) -> str:
        """Return the stored word, formatted."""
        return format(self.stored, spec)

    @property
    def stored(self) -> str:
        """Return the word in files, tables and messages to programs; `read` parses it."""
        return self.traits.stored or self.value

    @property
    def as_stored(self) -> Outcome:
        """Return the outcome that it is counted as: that of its stored word."""
        return read(self.stored)

    @property
    def level(self) -> Level:
        """Return its severity."""
        return self.traits.level

    @property
    def blocks(self) -> bool:
        """Return whether it blocks publishing the tick."""
        return self.traits.level is Level.BLOCKS

    @property
    def words(self) -> Words:
        """Return the words for it."""
        return self.traits.words

    @property
    def evaluated(self) -> bool:
        """Return whether rows or numbers were evaluated."""
        return self.traits.evaluated

    @property
    def rank(self) -> int | None:
        """Return its rank among stored outcomes, 0 for the best; None for one without a history."""
        return self.traits.rank

    @property
    def kept(self) -> bool:
        """Return whether it becomes part of a check's history: the check ran."""
        return self.traits.rank is not None

    @property
    def height(self) -> int:
        """Return the height of its bar in a chart: worse is taller, for readers who can't distinguish the colors."""
        return self.traits.height

    @property
    def css(self) -> str:
        """Return its CSS class on a page."""
        return self.traits.css or self.stored

    @property
    def dbt(self) -> str:
        """Return dbt's word for it; dbt has none for notes, and its readers reject other words."""
        return self.traits.dbt

    @property
    def junit(self) -> str:
        """Return the element of a JUnit test case for it; "" if there is nothing to report."""
        return self.traits.junit

    @property
    def sql(self) -> str:
        """Return the stored word as an SQL literal."""
        return f"'{self.stored}'"

    def amount(self, checks: int) -> str:
        """Return a number of checks with this outcome, as text.

        >>> Outcome.WARN.amount(2), Outcome.ERROR.amount(1000)
        ('2 warnings', '1,000 could not be evaluated')
        """
        match self.level:
            case Level.NOTE | Level.WARNING if self.evaluated:
                return counted(checks, self.level.noun)
            case _:
                return f"{checks:,} {self.words.told}"

    def headline(self, amount: str) -> tuple[str, str]:
        """Return a headline, before and after the name of the table; `amount` is the number of unexpected rows.

        >>> "orders".join(Outcome.FAIL.headline("3 of 9 rows")), "orders".join(Outcome.UNJUDGED.headline(""))
        ('orders: 3 of 9 rows not as expected', 'orders: not evaluated yet')
        """
        match self:
            case Outcome.PASS:
                return "", ": as expected"
            case Outcome.FAIL | Outcome.WARN | Outcome.INFO:
                return "", f": {amount} not as expected" if amount else ": not as expected"
            case Outcome.ERROR:
                return "The check of ", " could not be evaluated, which is never a pass"
            case Outcome.UNJUDGED:
                return "", ": not evaluated yet"
            case Outcome.UNMEASURED:
                return "", ": not measured"

    def sentence(self, amount: str, message: str) -> str:
        """Return one sentence without a headline; the check's own message if no rows were evaluated."""
        match self:
            case Outcome.FAIL | Outcome.WARN | Outcome.INFO | Outcome.PASS:
                return f"{amount} not as expected" if amount else message
            case Outcome.ERROR:
                return f"{NEVER_PASS}: {message}"
            case Outcome.UNJUDGED | Outcome.UNMEASURED:
                return message


# Outcomes with a stored word of their own; the others share one of these.
STORED = tuple(outcome for outcome in Outcome if outcome.stored == outcome.value)
# Outcomes in a check's history, each at the index of its rank.
RANKED = tuple(sorted((outcome for outcome in STORED if outcome.kept), key=lambda outcome: outcome.rank or 0))
WORST_FIRST = tuple(sorted(Outcome, key=lambda outcome: -outcome.level.place))
BLOCKING = tuple(outcome for outcome in Outcome if outcome.blocks)


def listed(outcomes: Iterable[Outcome]) -> str:
    """Return outcomes as an SQL list.

    >>> listed(BLOCKING)
    "('fail', 'error')"
    """
    return f"({', '.join(outcome.sql for outcome in outcomes)})"


def read(word: str) -> Outcome:
    """Return the outcome of a stored word; a word that this version doesn't know never counts as a pass.

    >>> read("warn") is Outcome.WARN, read("a later word") is Outcome.ERROR
    (True, True)
    """
    return next((outcome for outcome in STORED if outcome.stored == word), Outcome.ERROR)


def of_failure(expectation: Expectation) -> Outcome:
    """Return the outcome of a failure: by `on_fail`; by severity for quarantine rules that `sqlrun check` evaluates."""
    held_back = expectation.on_fail == QUARANTINE and expectation.severity == CRITICAL
    if held_back or expectation.on_fail == FAIL:
        return Outcome.FAIL
    return Outcome.INFO if expectation.severity == INFO else Outcome.WARN


def script() -> str:
    """Return the JavaScript module with the severity of each stored outcome."""
    levels = ", ".join(f'{outcome.stored}: "{outcome.level.css}"' for outcome in STORED)
    good = ", ".join(f'"{outcome.stored}"' for outcome in STORED if outcome.level is Level.GOOD)
    return (
        "// Written by `SQLRUN_WRITE=1 python -m pytest tests/report/test_outcomes.py`, from sqlrun/outcome.py.\n\n"
        f"// The class of a check's outcome on the page.\nexport const LEVELS = {{ {levels} }};\n"
        f"\n// The outcomes of which nothing has to be seen.\nexport const GOOD = [{good}];\n"
    )
