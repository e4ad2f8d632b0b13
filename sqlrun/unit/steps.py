"""One unit test, tick after tick: what comes and leaves, the tables, what they are compared with. Shell: DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from sqlglot import exp

from sqlrun.errors import Place
from sqlrun.incremental import types
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.script import Moment
from sqlrun.incremental.sql import identifier, names
from sqlrun.incremental.stages import Stage
from sqlrun.model import Change, Column, Expected, Row, UnitTest
from sqlrun.ticks import parse_time
from sqlrun.unit.chain import Chain, Input, relation_name
from sqlrun.unit.memory import Memory, relation
from sqlrun.unit.statements import Statements
from sqlrun.unit.texts import Written
from sqlrun.unit.values import literal, shown

Texts = tuple[str, ...]
# The time of a test that doesn't say one and whose model doesn't ask.
NO_TIME = "2000-01-01 00:00:00"


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it has to be: rows as text over `columns`, those that lack and those that are too many."""

    compared: str
    step: int
    columns: Texts = ()
    missing: tuple[Texts, ...] = ()
    unexpected: tuple[Texts, ...] = ()
    message: str = ""


class Misuse(ValueError):
    """A test asks for what can't be: a row that isn't there leaves."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a model after a tick, values as text, over its columns."""

    columns: Texts
    rows: Counter[Texts]

    def only(self, columns: Texts) -> Counter[Texts]:
        """Leave out other columns."""
        if columns == self.columns:
            return self.rows
        places = [self.columns.index(name) for name in columns]
        found: Counter[Texts] = Counter()
        for row, count in self.rows.items():
            found[tuple(row[place] for place in places)] += count
        return found


class Play:
    """One test on its way: its tables, and the time of the tick."""

    def __init__(self, memory: Memory, chain: Chain, statements: Statements, test: UnitTest) -> None:
        self._memory, self._chain, self._statements, self._test = memory, chain, statements, test
        self._tested = chain.models[-1]
        self._moment = Moment(parse_time(test.as_of or NO_TIME), None)
        self._at: Place = test.place

    def differences(self) -> Iterable[Difference]:
        """Play tick after tick, and give what differs in the first one where anything does.

        Raises: Misuse, and DuckDB's errors.
        """
        self._hold()
        before = Table(self._columns(), Counter())
        for number in range(len(self._test.steps) + 1):
            step = self._test.steps[number - 1] if number else None
            if step is not None:
                self._at = step.place
                as_of = self._moment.as_of if not step.as_of else parse_time(step.as_of)
                self._moment = Moment(_later(as_of, self._moment.as_of), self._moment.as_of)
                for change in step.changes:
                    self._change(change)
            after = self._tick(fresh=step is None)
            expect = self._test.expect if step is None else step.expect
            found = [*self._differing(number, after, before, expect)]
            yield from found
            if found:
                return
            before = after

    def _hold(self) -> None:
        """Make all tables, and let the rows come that are given."""
        for one in self._chain.inputs:
            self._memory.hold(one.name, [(c.name, c.type) for c in one.columns])
        for stage in self._chain.stages:
            self._memory.hold(stage.name, [(c.name, c.type) for c in stage.columns])
        for given in self._test.given:
            self._come(self._chain.input(relation_name(given.input)), given.rows)

    def _come(self, one: Input, rows: Iterable[Row]) -> None:
        values = ", ".join(f"({_values(row, one.columns)}, 1)" for row in rows)
        if values:
            self._memory.connection.execute(f"insert into {relation(one.name, 'changes')} values {values}")

    def _change(self, change: Change) -> None:
        """Record what comes and leaves in this step."""
        one = self._chain.input(relation_name(change.input))
        if one.grows and (change.left or change.updated):
            raise Misuse(f"{change.place}: rows of {one.label} only come: no tick of it lets one leave or change")
        for row in change.left:
            self._leave(one, row, tuple(row), change.place)
        for row in change.updated:
            if not one.grain:
                raise Misuse(f"{change.place}: {one.label} has no grain to find the updated row by")
            lacks = [name for name in one.grain if name not in row]
            if lacks:
                raise Misuse(f"{change.place}: an updated row of {one.label} has to name its {lacks[0]}")
            self._leave(one, row, one.grain, change.place)
            self._update(one, row)
        self._come(one, change.came)

    def _leave(self, one: Input, row: Row, by: Iterable[str], place: Place) -> None:
        """Let the one row leave that has these values; of exact copies, one."""
        kinds = {column.name: types.parse(column.type) for column in one.columns}
        tests = [f"{identifier(name, 'duckdb')} is not distinct from {literal(row[name], kinds[name])}" for name in by]
        listed, where = names(kinds, "duckdb"), " and ".join(tests) or "true"
        rows = self._memory.connection.execute(
            f"select distinct {listed} from {relation(one.name, 'new')} where {where} limit 2"
        ).fetchall()
        if len(rows) != 1:
            found = "no row" if not rows else "more than one row"
            values = ", ".join(f"{name}: {shown(row[name])}" for name in by)
            hint = "" if not rows else "; name more columns"
            raise Misuse(f"{place}: {found} of {one.label} has {values}{hint}")
        self._memory.connection.execute(
            f"insert into {relation(one.name, 'changes')} "
            f"select {listed}, -1 from {relation(one.name, 'new')} where {where} limit 1"
        )

    def _update(self, one: Input, row: Row) -> None:
        """Let the row come that was just let go, with other values."""
        kinds = {column.name: types.parse(column.type) for column in one.columns}
        by = " and ".join(
            f"{identifier(name, 'duckdb')} is not distinct from {literal(row[name], kinds[name])}" for name in one.grain
        )
        items = ", ".join(
            literal(row[name], kind) if name in row else identifier(name, "duckdb") for name, kind in kinds.items()
        )
        self._memory.connection.execute(
            f"insert into {relation(one.name, 'changes')} "
            f"select {items}, 1 from {relation(one.name, 'new')} where {by} limit 1"
        )

    def _tick(self, *, fresh: bool) -> Table:
        """Bring all tables up to date; give the rows of the tested model."""
        changed = {one.name for one in self._chain.inputs if self._memory.load(one.name)}
        moment = self._moment

        def write(stage: Stage, seen: frozenset[str]) -> Written | None:
            return self._statements.of_stage(stage, seen, moment, fresh=fresh)

        self._memory.tick(self._chain.stages, changed, write)
        self._memory.forget(one.name for one in self._chain.inputs)
        return self._table(self._tested)

    def _columns(self) -> Texts:
        return tuple(column.name for column in self._tested.query.rendered.model.columns)

    def _table(self, model: Compiled) -> Table:
        """Give the rows of a kept table, its columns by the contract."""
        columns = tuple(column.name for column in model.own.public)
        text = f"select {names(columns, 'duckdb')} from {relation(model.name, 'new')}"
        rows = self._memory.connection.execute(text).fetchall()
        return Table(columns, Counter(tuple(map(shown, row)) for row in rows))

    def _differing(self, number: int, after: Table, before: Table, expect: Expected) -> Iterable[Difference]:
        """Compare the kept tables with the whole queries, then with what is expected."""
        for model in self._chain.models:
            text = self._statements.whole(model, self._moment)
            whole = self._memory.computer.rows(self._memory, text)
            wanted = Counter(tuple(map(shown, row)) for row in whole)
            kept = after if model is self._tested else self._table(model)
            if wanted != kept.rows:
                yield _compared("whole", number, kept.columns, wanted, kept.rows, self._why(number, model))
                return
        if expect.rows is not None:
            columns = named(expect.rows, after.columns)
            wanted = self._bag(expect.rows, columns)
            if wanted != after.only(columns):
                yield _compared("rows", number, columns, wanted, after.only(columns), self._step(number))
                return
        if expect.came is not None or expect.left is not None:
            yield from self._changed(number, after, before, expect)

    def _changed(self, number: int, after: Table, before: Table, expect: Expected) -> Iterable[Difference]:
        columns = named((*(expect.came or ()), *(expect.left or ())), after.columns)
        for rows, one, other in ((expect.came, after, before), (expect.left, before, after)):
            if rows is None:
                continue
            wanted, found = self._bag(rows, columns), Table(after.columns, one.rows - other.rows).only(columns)
            if wanted != found:
                word = "came to" if rows is expect.came else "left"
                message = f"{self._step(number)}: what {word} {self._test.model}"
                yield _compared("change", number, columns, wanted, found, message)

    def _step(self, number: int) -> str:
        return f"step {number} ({self._at})" if number else ""

    def _why(self, number: int, model: Compiled) -> str:
        at = f"{self._step(number)}: " if number else ""
        return f"{at}the kept table of {model.name} is not what its query says of the same inputs"

    def _bag(self, rows: Iterable[Row], columns: Texts) -> Counter[Texts]:
        """Give expected rows as text, in the types of the contract."""
        known = {c.name: c for c in self._tested.query.rendered.model.columns}
        values = [f"({_values(row, [known[name] for name in columns])})" for row in rows]
        if not values:
            return Counter()
        found = self._memory.connection.execute(f"values {', '.join(values)}").fetchall()
        return Counter(tuple(map(shown, row)) for row in found)


def _later(as_of: datetime, before: datetime) -> datetime:
    if as_of < before:
        raise Misuse(f"as_of goes back, from {before:%Y-%m-%d %H:%M:%S} to {as_of:%Y-%m-%d %H:%M:%S}: ticks don't")
    return as_of


def named(rows: Iterable[Row], columns: Texts) -> Texts:
    """List the columns to compare: those that any expected row names, in the query's order; all if none does."""
    found = {name for row in rows for name in row}
    return tuple(name for name in columns if name in found) or columns


def _compared(
    compared: str, step: int, columns: Texts, wanted: Counter[Texts], found: Counter[Texts], message: str = ""
) -> Difference:
    return Difference(compared, step, columns, _listed(wanted - found), _listed(found - wanted), message)


def _listed(rows: Counter[Texts]) -> tuple[Texts, ...]:
    return tuple(sorted(rows.elements()))


@cache
def _kind(spark_type: str) -> exp.DataType | None:
    return types.parse(spark_type)


def _values(row: Row, columns: Iterable[Column]) -> str:
    return ", ".join(literal(row.get(column.name), _kind(column.type)) for column in columns)
