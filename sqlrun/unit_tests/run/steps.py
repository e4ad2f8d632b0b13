"""One unit test, tick after tick: its changes, its tables, and the comparisons. Shell: DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache

from sqlglot import exp

from sqlrun.engine_api import StoredColumn
from sqlrun.engines.duckdb.memory import Memory, OnDuckDB, relation
from sqlrun.engines.duckdb.memory_texts import Written
from sqlrun.errors import Place
from sqlrun.incremental import types
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing.query import Rule, drop_tests
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.project import Change, Column, Expected, Given, Row, UnitTest
from sqlrun.runtime.clock import parse_time
from sqlrun.test_definitions.names import inner
from sqlrun.test_definitions.queries import given_sql
from sqlrun.test_definitions.values import literal, shown
from sqlrun.transpile.writer import cast, identifier, names
from sqlrun.unit_tests.run.chain import Chain, Input
from sqlrun.unit_tests.run.lines import QUARANTINE, QUARANTINE_COLUMNS, land
from sqlrun.unit_tests.run.statements import Statements
from sqlrun.unit_tests.run.tables import Difference, Table, broken, difference, named

# The time of a test without one, if its model doesn't use it.
NO_TIME = "2000-01-01 00:00:00"
LANDED = "_landing"


class Misuse(ValueError):
    """An impossible step of a test, such as the deletion of a missing row. The message starts with the place."""


class Play:
    """The state of one test: its tables and the tick's time. `rules` are the checks of its landing models.

    `beside` are DuckDB's texts if another engine runs the test: both results have to be equal.
    """

    def __init__(
        self,
        memory: Memory,
        chain: Chain,
        statements: Statements,
        test: UnitTest,
        rules: Mapping[str, Sequence[Rule]],
        beside: Statements | None = None,
    ) -> None:
        self._memory, self._chain, self._statements = memory, chain, statements
        self._test, self._rules, self._beside = test, rules, beside
        self._moment = Moment(parse_time(test.as_of or NO_TIME), None)
        self._model = chain.tested.rendered.model
        self._columns = tuple(column.name for column in self._model.columns)
        self._at: Place = test.place
        self._number = 0

    def difference(self) -> Difference | None:
        """Play the ticks up to the first difference and return it; None if there is none.

        Raises: Misuse, and DuckDB's errors.
        """
        self._create_tables()
        before = Table(self._columns)
        for number in range(len(self._test.steps) + 1):
            expect = self._test.expect
            if number:
                step = self._test.steps[number - 1]
                self._number, self._at, expect = number, step.place, step.expect
                as_of = parse_time(step.as_of) if step.as_of else self._moment.as_of
                self._moment = Moment(_later(as_of, self._moment.as_of, step.place), self._moment.as_of)
                for change in step.changes:
                    self._change(change)
            after = self._tick()
            found = self._differing(after, before, expect)
            if found is not None:
                return found
            before = after
        return None

    def _create_tables(self) -> None:
        """Create all tables and add the given rows to the inputs."""
        for one in self._chain.inputs:
            self._memory.hold(one.name, [(c.name, c.type) for c in one.columns])
        for model in self._chain.models:
            for stage in model.stages:
                self._memory.hold(stage.name, [(c.name, c.type) for c in stage.columns])
        for given in self._test.given if self._chain.inputs else ():
            self._add_given(given)

    def _add_given(self, given: Given) -> None:
        one = self._chain.input(inner(given.input))
        if given.lines is not None:
            self._land(one.name, given.lines)
        elif given.sql:
            changes = relation(one.name, "changes")
            text = f"select *, 1 as _weight from ({given_sql(given.sql)})"
            self._memory.connection.execute(f"insert into {changes} by name {text}")
        else:
            self._add_rows(one, given.rows)
        self._drop(one)

    def _drop(self, one: Input) -> None:
        """Remove the added rows of a source that its drop rules leave out."""
        for _, test in drop_tests(one.source, "duckdb") if one.source else ():
            self._memory.connection.execute(f"delete from {relation(one.name, 'changes')} where {test}")

    def _add_rows(self, one: Input, rows: Iterable[Row]) -> None:
        values = ", ".join(f"({_values(row, one.columns)}, 1)" for row in rows)
        if values:
            self._memory.connection.execute(f"insert into {relation(one.name, 'changes')} values {values}")

    def _land(self, source: str, lines: Sequence[str]) -> None:
        """Add the rows that a source's lines become, in every model that lands them."""
        for model in self._chain.landing[source]:
            query = self._statements.landing(model, self._rules[model.name], self._moment)
            land(self._memory.connection, model, query, lines, LANDED)
            listed = names((c.name for c in model.own.columns), "duckdb")
            self._memory.connection.execute(
                f"insert into {relation(model.name, 'changes')} select {listed}, 1 from {LANDED}; "
                f"create or replace temp table {_quarantine_table(model)} as from {LANDED}{QUARANTINE}"
            )

    def _change(self, change: Change) -> None:
        """Record the changes of an input in this step."""
        one = self._chain.input(inner(change.input))
        if one.grows and (change.left or change.updated):
            raise Misuse(f"{change.place}  {one.label} is append-only, so its rows can't leave or change")
        for row in change.left:
            self._remove_row(one, row, tuple(row), change.place)
        for row in change.updated:
            lacks = [name for name in one.grain if name not in row]
            if not one.grain or lacks:
                why = f"the updated row lacks `{lacks[0]}`" if lacks else "the input has no grain"
                raise Misuse(f"{change.place}  sqlrun can't find the row of {one.label} to update: {why}")
            self._remove_row(one, row, one.grain, change.place)
            self._add_updated(one, row)
        self._add_rows(one, change.came)
        self._drop(one)
        if change.lines is not None:
            self._land(one.name, change.lines)

    def _remove_row(self, one: Input, row: Row, by: Sequence[str], place: Place) -> None:
        """Remove the one row with these values; of exact copies, one."""
        new, changes, where = relation(one.name, "new"), relation(one.name, "changes"), _found_by(one, row, by)
        listed = names((c.name for c in one.columns), "duckdb")
        rows = self._memory.connection.execute(f"select distinct {listed} from {new} where {where} limit 2").fetchall()
        if len(rows) != 1:
            values = ", ".join(f"{name}: {shown(row[name])}" for name in by)
            found, hint = ("more than one row", ". Add more columns") if rows else ("no row", "")
            raise Misuse(f"{place}  {found} of {one.label} has {values}{hint}")
        self._memory.connection.execute(f"insert into {changes} select {listed}, -1 from {new} where {where} limit 1")

    def _add_updated(self, one: Input, row: Row) -> None:
        """Add the row just removed again, with other values."""
        new, changes = relation(one.name, "new"), relation(one.name, "changes")
        items = ", ".join(
            literal(row[c.name], _kind(c.type)) if c.name in row else identifier(c.name, "duckdb") for c in one.columns
        )
        where = _found_by(one, row, one.grain)
        self._memory.connection.execute(f"insert into {changes} select {items}, 1 from {new} where {where} limit 1")

    def _tick(self) -> Table:
        """Update all tables; return the rows of the tested model."""
        changed = {one.name for one in self._chain.inputs if self._memory.load(one.name)}
        moment, fresh = self._moment, not self._number

        def write(stage: Stage, seen: frozenset[str]) -> Written | None:
            return self._statements.of_stage(stage, seen, moment, fresh=fresh)

        for model in self._chain.models:
            if model.stages:
                self._memory.computer.foresee(model.own, self._statements.whole(model, moment))
        self._memory.tick(self._chain.stages, changed, write, self._model.name)
        if self._chain.inputs:
            self._memory.forget(one.name for one in self._chain.inputs)
        if self._chain.models and self._chain.kept is None:
            return self._whole(self._chain.models[-1])
        return self._table(self._model.name, self._columns)

    def _table(self, name: str, columns: tuple[str, ...]) -> Table:
        """Return the rows of a table in memory."""
        text = f"select {names(columns, 'duckdb')} from {relation(name, 'new')}"
        return Table(columns, tuple(self._memory.connection.execute(text).fetchall()))

    def _whole(self, model: Compiled) -> Table:
        """Return the result of a model's query over its inputs."""
        columns = tuple(column.name for column in model.query.rendered.model.columns)
        rows = self._memory.computer.rows(self._memory, self._statements.whole(model, self._moment))
        return Table(columns, tuple(rows))

    def _differing(self, after: Table, before: Table, expect: Expected) -> Difference | None:
        """Compare the maintained tables with the whole queries, then with the contract and the expected rows."""
        for model in self._chain.models:
            whole = self._whole(model) if model.stages else after
            found = self._parity(model, whole)
            if found is not None:
                return found
            if not model.stages or (model.own.history is not None and self._number):
                continue  # the query has a history's current versions alone
            kept = after if model is self._chain.kept else self._table(model.name, whole.columns)
            if not whole.same(kept):
                return difference("whole", self._number, whole, kept, self._difference_text(model))
        return self._unexpected(after, before, expect) or self._broken(after, expect)

    def _parity(self, model: Compiled, whole: Table) -> Difference | None:
        """Compare an engine's result with DuckDB's for the same inputs."""
        if self._beside is None:
            return None
        text = self._beside.whole(model, self._moment)
        answer = Table(whole.columns, tuple(OnDuckDB().rows(self._memory, text)))
        found = difference("parity", self._number, answer, whole)
        if found is None:
            return None
        rows = f"DuckDB returns {found.missing[:1] or 'nothing'}, Spark returns {found.unexpected[:1] or 'nothing'}"
        at = f"{self._step_text()}: " if self._number else ""
        return replace(found, message=f"{at}the engines differ on {model.name}: {rows}")

    def _unexpected(self, after: Table, before: Table, expect: Expected) -> Difference | None:
        number, step_text = self._number, self._step_text()
        if expect.rows is not None or expect.sql:
            wanted = self._expected(expect)
            found = difference("rows", number, wanted, after.only(wanted.columns), step_text)
            if found is not None:
                return found
        columns = named((*(expect.came or ()), *(expect.left or ())), self._columns)
        for rows, one, other, word in (
            (expect.came, after, before, "rows added to"),
            (expect.left, before, after, "rows removed from"),
        ):
            if rows is not None:
                wanted = self._rows(rows, columns, self._model.columns)
                message = f"{step_text}: {word} {self._test.model}"
                found = difference("change", number, wanted, one.less(other).only(columns), message)
                if found is not None:
                    return found
        return None if expect.quarantined is None else self._quarantined(expect.quarantined)

    def _quarantined(self, rows: Sequence[Row]) -> Difference | None:
        """Compare the lines that this tick quarantined."""
        model = next((m for ms in self._chain.landing.values() for m in ms if m.name == self._test.model), None)
        if model is None:
            raise Misuse(f"{self._at}  `quarantined` requires `lines` of the source of {self._test.model}")
        kinds = [*QUARANTINE_COLUMNS, *(StoredColumn(c.name, c.type) for c in self._model.columns)]
        columns = named(rows, tuple(column.name for column in kinds))
        came = any(one.lines is not None for one in self._came())
        text = f"select {names(columns, 'duckdb')} from {_quarantine_table(model)}"
        found = tuple(self._memory.connection.execute(text).fetchall()) if came else ()
        wanted = self._rows(rows, columns, [Column(c.name, c.type, "", self._at) for c in kinds])
        return difference("quarantined", self._number, wanted, Table(columns, found), self._step_text())

    def _came(self) -> Sequence[Given | Change]:
        return self._test.steps[self._number - 1].changes if self._number else self._test.given

    def _broken(self, after: Table, expect: Expected) -> Difference | None:
        """Return rows that break the contract; a column without given values counts only if expected rows name it."""
        model, compared = self._model, after
        if not self._is_complete():
            if not expect.rows:
                return None
            compared = after.only(named(expect.rows, self._columns))
        found = broken(compared, model.columns, model.grain, repeats=model.repeats)
        if found is None:
            return None
        message, rows = found
        prefix = f"{self._step_text()}: " if self._number else ""
        return Difference("contract", self._number, rows.columns, (), rows.texts, f"{prefix}{message}")

    def _is_complete(self) -> bool:
        """Return whether the given rows satisfy the contracts of the inputs."""
        for one in self._chain.inputs:
            if broken(self._table(one.name, tuple(c.name for c in one.columns)), one.columns, (), repeats=True):
                return False
        return True

    def _step_text(self) -> str:
        return f"step {self._number} ({self._at})" if self._number else ""

    def _difference_text(self, model: Compiled) -> str:
        """Return why a maintained table may differ from its query's result."""
        at = f"{self._step_text()}: " if self._number else ""
        text = f"{at}the maintained table of {model.name} differs from its query over the same inputs"
        for one in self._chain.inputs:
            table = self._table(one.name, tuple(c.name for c in one.columns))
            found = broken(table, one.columns, one.grain, repeats=one.repeats)
            if found is not None:
                return f"{text}. The rows of {one.label} break its contract: {found[0]}"
        return f"{text}. Check the contracts of the inputs. If they are correct, this is a bug of sqlrun"

    def _expected(self, expect: Expected) -> Table:
        """Return the expected rows, in the types of the contract."""
        if not expect.sql:
            assert expect.rows is not None
            return self._rows(expect.rows, named(expect.rows, self._columns), self._model.columns)
        text, connection = given_sql(expect.sql), self._memory.connection
        listed = {row[0] for row in connection.execute(f"describe {text}").fetchall()}
        columns = named([listed], self._columns)
        kinds = {column.name: column.type for column in self._model.columns}
        items = ", ".join(cast(identifier(name, "duckdb"), kinds[name], "duckdb") for name in columns)
        return Table(columns, tuple(connection.execute(f"select {items} from ({text})").fetchall()))

    def _rows(self, rows: Sequence[Row], columns: tuple[str, ...], known: Iterable[Column]) -> Table:
        """Return rows as DuckDB's values, so that 12.5 equals 12.50."""
        if not rows:
            return Table(columns)
        kinds = {column.name: column for column in known}
        values = ", ".join(f"({_values(row, [kinds[name] for name in columns])})" for row in rows)
        return Table(columns, tuple(self._memory.connection.execute(f"values {values}").fetchall()))


def _later(as_of: datetime, before: datetime, place: Place) -> datetime:
    if as_of < before:
        raise Misuse(
            f"{place}  as_of goes back from {before:%Y-%m-%d %H:%M:%S} to {as_of:%Y-%m-%d %H:%M:%S}, but "
            "ticks only go forward"
        )
    return as_of


def _quarantine_table(model: Compiled) -> str:
    return identifier(f"{model.name}{QUARANTINE}", "duckdb")


def _found_by(one: Input, row: Row, by: Iterable[str]) -> str:
    kinds = {column.name: column.type for column in one.columns}
    tests = (
        f"{identifier(name, 'duckdb')} is not distinct from {literal(row[name], _kind(kinds[name]))}" for name in by
    )
    return " and ".join(tests) or "true"


@cache
def _kind(spark_type: str) -> exp.DataType | None:
    return types.parse(spark_type)


def _values(row: Row, columns: Iterable[Column]) -> str:
    return ", ".join(literal(row.get(column.name), _kind(column.type)) for column in columns)
