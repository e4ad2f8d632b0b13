"""The third judge: the analyst's own text on Spark, by its parser and its engine, against what DuckDB has kept.

The compiler and the oracles share sqlglot and DuckDB; a mistake of either is invisible to both. Here Spark reads the
text as it was written over the rows at the end, and DuckDB keeps the model tick by tick, in Spark's types.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb

from sqlrun.errors import Place, ProjectError
from sqlrun.parse import spark_only
from sqlrun.parse.parse import Query
from sqlrun.project import Column, Model
from tests.fuzz.running import shared
from tests.judge.grammar import NOW, Grammar, Piece, smaller, tables
from tests.support.case_files import Case, Row, Step
from tests.support.memory import START, Memory, Table, View

VERDICTS = ("agreed", "refused", "refused by Spark", "both stopped", "known", "different")
# Differences that are known, by what a verdict says of them. What is mended leaves the list.
KNOWN = {
    "ivision by zero in expression": "DuckDB computes a row that Spark's plan leaves out, and divides by zero",
    "/: division by zero": "as above",
}
MOST_SMALLER = 60
_WORDS = ("a", "b", "B", "a b", "", " x", "ab%", "it's")
_VALUES: dict[str, Callable[[random.Random, int], str]] = {
    "int": lambda rng, _: rng.choice(("0", "1", "2", "3", "-1", "5", "100")),
    "bigint": lambda rng, _: rng.choice(("0", "1", "-7", "12", "3000000000")),
    "decimal(10,2)": lambda rng, _: rng.choice(("1.00", "2.50", "0.00", "-1.25", "7.77", "0.01", "99999.99")),
    "decimal(18,4)": lambda rng, _: rng.choice(("1.0000", "0.3333", "0.0000", "-2.0005", "12.5000", "1234567.8901")),
    "string": lambda rng, _: rng.choice(_WORDS),
    "boolean": lambda rng, _: rng.choice(("true", "false")),
    "timestamp": lambda rng, now: (START + timedelta(minutes=now - rng.choice((0, 5, 30, 61, 125, 1500)))).strftime(
        "%Y-%m-%d %H:%M:%S"
    ),
    "date": lambda rng, now: f"{START + timedelta(minutes=now - rng.choice((0, 1440, 40000))):%Y-%m-%d}",
}


@dataclass
class Judged(Memory):
    """Models over their own text: refs are put in as text, and the contract has the types that Spark gives."""

    types: tuple[tuple[str, str], ...] = ()

    def _with_refs(self, sql: str, names: list[str]) -> str:
        for name in names:
            sql = sql.replace(f"<{name}>", f"ref.{name}")
        return sql.replace(NOW, "current_timestamp()")

    def _describe(
        self, model: Model, names: list[str], models: list[Model], queries: dict[str, Query]
    ) -> tuple[Column, ...]:
        return tuple(Column(name, kind, "", Place(name)) for name, kind in self.types)


@dataclass
class Example:
    """Tables with the script of their changes, and a query over them."""

    tables: list[Table]
    steps: list[Step]
    query: Piece
    given: list[tuple[str, str]]

    def case(self, why: str) -> Case:
        """Write it as a case, over plain names of tables."""
        sql = self.query.text().replace(NOW, "current_timestamp()")
        for table in self.tables:
            sql = sql.replace(f"<{table.name}>", table.name)
        return Case(why, "", self.tables, [View("v1", re.sub(r"/\*.*?\*/", "", sql))], steps=self.steps)


@dataclass
class Verdict:
    """What became of an example, and why."""

    word: str
    why: str = ""


@dataclass
class Counts:
    """How many examples ended in which way."""

    words: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        self.words[verdict.word] += 1
        if verdict.word.startswith("refused"):
            self.codes[f"{verdict.word}: {verdict.why[:60]}"] += 1

    def text(self) -> str:
        most = "\n".join(f"  {count:5d} {code}" for code, count in self.codes.most_common(25))
        return ", ".join(f"{word} {self.words[word]}" for word in VERDICTS) + f"\n{most}"


def script(rng: random.Random, made: list[Table]) -> list[Step]:
    """Write a script: rows come, change and leave in three ticks."""
    steps, now, rows = [], 720, {table.name: dict[str, tuple[str | None, ...]]() for table in made}
    for number in range(3):
        step = Step(0, START + timedelta(minutes=now))
        for table in made:
            held, changes = rows[table.name], list[Row]()
            if number:
                for key in rng.sample(sorted(held), min(len(held), rng.randint(0, 2))):
                    changes.append((-1, held.pop(key)))
            for key in rng.sample(range(1, 9), rng.randint(2, 5) if not number else rng.randint(0, 2)):
                if str(key) not in held:
                    held[str(key)] = _row(rng, table, key, now)
                    changes.append((1, held[str(key)]))
            if changes:
                step.changes.append((table.name, changes))
        steps.append(step)
        now += rng.choice((5, 60))
    return steps


def _row(rng: random.Random, table: Table, key: int, now: int) -> tuple[str | None, ...]:
    return tuple(
        str(key)
        if name == "k"
        else None
        if name not in table.required and rng.random() < 0.15
        else _VALUES[kind](rng, now)
        for name, kind in table.columns
    )


def at_end(made: list[Table], steps: list[Step]) -> dict[str, list[tuple[str | None, ...]]]:
    """Give the rows that each table has at the end."""
    bags: dict[str, Counter[tuple[str | None, ...]]] = {table.name: Counter() for table in made}
    for step in steps:
        for name, changes in step.changes:
            for weight, row in changes:
                bags[name][row] += weight
    return {name: list(bag.elements()) for name, bag in bags.items()}


class Judge:
    """Asks Spark, or what speaks its protocol: `session` has `sql(text)` with `schema` and `collect()`."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def hold(self, made: list[Table], steps: list[Step]) -> None:
        """Make the tables as they are at the end."""
        rows = at_end(made, steps)
        for table in made:
            kinds = [kind for _, kind in table.columns]
            names = ", ".join(name for name, _ in table.columns)
            listed = ", ".join(
                "(" + ", ".join(_literal(value, kind) for value, kind in zip(row, kinds, strict=True)) + ")"
                for row in rows[table.name] or [tuple(None for _ in kinds)]
            )
            gone = "" if rows[table.name] else " where false"
            sql = f"select * from values {listed} as t({names}){gone}"
            self.session.sql(sql).createOrReplaceTempView(table.name)

    def text(self, example: Example) -> str:
        """Write the query as Spark reads it: names of views for refs, the tick's time as a literal."""
        sql = example.query.text().replace(NOW, f"timestamp '{example.steps[-1].as_of:%Y-%m-%d %H:%M:%S}'")
        for table in example.tables:
            sql = sql.replace(f"<{table.name}>", table.name)
        return sql

    def judge(self, example: Example) -> Verdict:
        """Play an example on both; a difference that is known is counted as such."""
        verdict = self._judged(example)
        known = next((name for text, name in KNOWN.items() if text in verdict.why), None)
        return Verdict("known", known) if known and verdict.word == "different" else verdict

    def _judged(self, example: Example) -> Verdict:
        try:
            frame = self.session.sql(self.text(example))
            types = tuple((f.name, f.dataType.simpleString()) for f in frame.schema.fields)
            refused = ""
        except Exception as error:  # of the analyzer
            frame, refused = None, str(error).split("\n")[0][:150]
            types = tuple(example.given)
        try:
            kept = _kept(example, types)
        except ProjectError as error:
            problem = error.problems[0]
            return Verdict("refused", f"{problem.code} {problem.message}")
        except _Stopped as stopped:
            kept = str(stopped)
        if frame is None:
            word = "both stopped" if isinstance(kept, str) else "different"
            return Verdict("refused by Spark" if word == "both stopped" else word, f"Spark refuses it: {refused}")
        try:
            wanted: Any = Counter(tuple(plain(value) for value in row) for row in frame.collect())
        except Exception as error:  # while it runs
            wanted = str(error).split("\n")[0][:150]
        if isinstance(wanted, str) or isinstance(kept, str):
            both = isinstance(wanted, str) and isinstance(kept, str)
            return Verdict("both stopped" if both else "different", f"Spark: {_short(wanted)}; DuckDB: {_short(kept)}")
        if kept != wanted:
            why = f"only Spark has {dict(wanted - kept)}, only DuckDB {dict(kept - wanted)}"
            return Verdict("different", why)
        return Verdict("agreed")


class _Stopped(Exception):
    """A tick ended in an error of DuckDB's."""


def _short(found: Any) -> str:
    return found if isinstance(found, str) else f"{sum(found.values())} rows"


def _kept(example: Example, types: tuple[tuple[str, str], ...]) -> Counter[tuple[Any, ...]]:
    connection = shared()
    connection.execute("drop schema if exists fuzz cascade; create schema fuzz; set schema = 'fuzz'")
    memory = Judged(example.tables, [View("v1", example.query.text())], connection, types=types)
    alone = spark_only.problems([one.query for one in memory.compiled])
    if alone:
        raise ProjectError(list(alone))
    try:
        for step in example.steps:
            for table, rows in step.changes:
                memory.change(table, rows)
            memory.step(step.as_of)
        found = memory.kept("v1")
    except duckdb.Error as error:
        raise _Stopped(str(error).split("\n")[0][:150]) from None
    return Counter({tuple(plain(value) for value in row): n for row, n in found.items()})


def plain(value: Any) -> Any:
    """Make values of both engines comparable: decimals by their digits, doubles by twelve of them."""
    match value:
        case bool() | None | str():
            return value
        case float():
            return "nan" if math.isnan(value) else f"{value:.12g}".replace("-0", "0") if value == 0 else f"{value:.12g}"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case date():
            return value.isoformat()
        case list() | tuple():
            return tuple(plain(one) for one in value)
        case _:
            return value


def _literal(value: str | None, kind: str) -> str:
    text = "null" if value is None else "'" + value.replace("'", "\\'") + "'"
    return f"cast({text} as {kind})"


def examples(seed: int, count: int, each: int = 20) -> Iterable[tuple[list[Table], list[Step], list[Example]]]:
    """Draw examples, some over the same tables each."""
    for first in range(0, count, each):
        rng = random.Random(seed * 1_000_003 + first)
        made = tables()
        steps = script(rng, made)
        yield made, steps, [_drawn(rng, made, steps) for _ in range(min(each, count - first))]


def _drawn(rng: random.Random, made: list[Table], steps: list[Step]) -> Example:
    grammar = Grammar(rng)
    return Example(made, steps, grammar.query(), grammar.given)


def shrunk(judge: Judge, example: Example, why: str) -> Example:
    """Make a failing example smaller, as long as it fails in the same way."""
    tried, again = 0, True
    while again and tried < MOST_SMALLER:
        again = False
        for _ in smaller(example.query):
            tried += 1
            if tried >= MOST_SMALLER:
                break
            verdict = judge.judge(example)
            if verdict.word == "different" and _kind(verdict.why) == _kind(why):
                again = True
                break
    return dataclasses.replace(example)


def _kind(why: str) -> str:
    return re.sub(r"[\d'\"].*", "", why)[:40]
