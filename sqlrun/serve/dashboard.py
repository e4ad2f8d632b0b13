"""The columns that a declared dashboard reads from a tick, and the SQL of its answers. Pure.

One statement computes all answers of a tick when it is published, so that a request only looks up bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, floor, isfinite
from typing import Any

from sqlrun.dashboards.nouns import BEFORE, Dashboard, Measure, Ranked
from sqlrun.dashboards.shown_types import fields_of
from sqlrun.engine_api import Relation
from sqlrun.transpile.writer import identifier, string, timestamp

WEEK = timedelta(hours=168)
TREND_HOURS = 168
# Maximum number of items in a prepared list made from rows.
MOST_ITEMS = 20
# Maximum number of items in a list computed on demand.
MOST_LISTED = 50
ISO = "%Y-%m-%dT%H:%M:%SZ"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The entity's key in every part of the statement. A user's column of this name can't collide outside its own table.
KEY = "_entity"


@dataclass(frozen=True, slots=True)
class Span:
    """A past time span, (start, end], to compare a window of `hours` with."""

    hours: int
    name: str  # before: the same length right before the window. last_week: the same hours a week ago.
    start: datetime
    end: datetime


def spans(as_of: datetime, widths: Sequence[int], compare: Sequence[str] = (BEFORE, "last_week")) -> tuple[Span, ...]:
    """Return the spans that each window is compared with.

    >>> [(s.name, f"{s.start:%d %H}", f"{s.end:%d %H}") for s in spans(datetime(2026, 5, 14, 12), [24])]
    [('before', '12 12', '13 12'), ('last_week', '06 12', '07 12')]
    """
    found = []
    for hours in widths:
        width = timedelta(hours=hours)
        for name in compare:
            end = as_of - (width if name == BEFORE else WEEK)
            found.append(Span(hours, name, end - width, end))
    return tuple(found)


def hour_of(moment: datetime) -> datetime:
    """Return the start of the hour that contains a time."""
    return moment.replace(minute=0, second=0, microsecond=0)


def iso(moment: datetime) -> str:
    """Return a time in the format of answers: ISO 8601 in UTC."""
    return moment.astimezone(timezone.utc).strftime(ISO)


def ranges(board: Dashboard, as_of: datetime) -> Mapping[str, tuple[tuple[str, datetime, datetime], ...]]:
    """Return the time ranges to read from tables of the trend; a table with a second purpose is read in full."""
    starts = [span.start for span in spans(as_of, board.widths, board.compare)]
    low, found = hour_of(min(*starts, trend_start(as_of), as_of)), {}
    if board.by_slot is not None:
        # Without a table of hours, all slots are needed. With one, only slots of partial hours are, perhaps none.
        begun = tuple((board.by_slot.at, *edge) for edge in edges(board, as_of)) or ((board.by_slot.at, as_of, low),)
        found[board.by_slot.table] = begun if board.by_hour else ((board.by_slot.at, low, as_of),)
    if board.by_hour is not None:
        found[board.by_hour.table] = ((board.by_hour.at, low, as_of),)
    named = [timed.table for timed in (board.by_hour, board.by_slot) if timed is not None]
    others = [board.windows, board.entity.table, *(m.table for m in board.measures), *(r.table for r in board.lists)]
    return {table: some for table, some in found.items() if named.count(table) == 1 and table not in others}


def edges(board: Dashboard, as_of: datetime) -> tuple[tuple[datetime, datetime], ...]:
    """Return the partial hours at the ends of the spans, (start, end]: slots are read for these, hours for the rest."""
    found = spans(as_of, board.widths, board.compare)
    moments = sorted({moment for span in found for moment in (span.start, span.end)})
    return tuple((hour_of(moment), moment) for moment in moments if moment != hour_of(moment))


def needs(board: Dashboard) -> Mapping[str, tuple[str, ...]]:
    """Return the columns that a dashboard requires, by table."""
    found: dict[str, list[str]] = {}

    def add(table: str, *columns: str) -> None:
        found.setdefault(table, []).extend(column for column in columns if column)

    key, trend = board.entity.key, [measure.column for measure in board.trend]
    add(board.windows, board.hours, key, *(m.column for m in board.shown), *(r.column for r in board.lists))
    if board.entity.table:
        add(board.entity.table, key)
    for measure in board.beside:
        add(measure.table, key, board.hours, measure.column)
    for ranked in board.lists:
        if ranked.table:
            add(ranked.table, key, board.hours, ranked.item, ranked.label, ranked.value, ranked.money)
    for timed in (board.by_hour, board.by_slot):
        if timed is not None:
            add(timed.table, key, timed.at, *trend)
    return {table: tuple(dict.fromkeys(columns)) for table, columns in found.items()}


def answers_sql(
    board: Dashboard,
    tables: Mapping[str, Relation],
    tick: int,
    as_of: datetime,
    since: str,
    incomplete: frozenset[int] = frozenset(),
    complete_to: datetime | None = None,
) -> str:
    """Return SQL that selects a row for each entity of any table, in the order of keys.

    Its columns:

    - the key
    - `known`: the entity's fields as JSON
    - `window_<hours>`: the answer for each width as JSON
    - `hour` and `trend_<n>`: lists of the entity's hours (since 1970, in no order) and of the measures in them

    `since` is the hour of the first fact (ISO; "" if unknown): a span that begins before it has no comparison.
    `incomplete` are the widths of windows that lack lost lines. `complete_to` is the commit of the last transaction of
    a database that the tick has; None if the dashboard reads none by whole transactions.
    """
    return _Statement(board, tables, tick, as_of, since, incomplete, complete_to).sql()


def known_fields(board: Dashboard) -> Mapping[str, str]:
    """Return the fields of an entity in answers, without its key: the column by the field's name, "" for none."""
    entity = board.entity
    fields = {"name": entity.label}
    if entity.place:
        fields[place_key(board)] = entity.place
    return fields | {"currency": entity.currency, "time_zone": entity.time_zone}


def place_key(board: Dashboard) -> str:
    """Return the name of an entity's place in answers: its column, or `place` if another field has that name."""
    column = board.entity.place
    return "place" if column in ("id", "name", "currency", "time_zone") else column


class _Statement:
    """One statement over the tables of a tick. Each of its parts has one row for each entity."""

    def __init__(
        self,
        board: Dashboard,
        tables: Mapping[str, Relation],
        tick: int,
        as_of: datetime,
        since: str,
        incomplete: frozenset[int],
        complete_to: datetime | None,
    ) -> None:
        self.board, self.tick, self.as_of, self.since, self.incomplete = board, tick, as_of, since, incomplete
        self.complete_to = complete_to
        self.compared = spans(as_of, board.widths, board.compare) if board.trend else ()
        self.types = {name: {c.name: c.type for c in table.columns} for name, table in tables.items()}
        self.named_by = board.entity.table or board.windows

    def sql(self) -> str:
        """Return the statement: its parts, joined by the key."""
        board = self.board
        parts = {"shown": self._shown()}
        if board.entity.table:
            parts["named"] = self._grouped(board.entity.table, self._names())
        if board.trend:
            parts["hourly"] = self._hourly()
            parts["whole"] = self._whole()
        if board.by_slot is not None and self.compared:
            parts["begun"] = self._begun(board.by_slot.table, board.by_slot.at)
        for number, measure in enumerate(board.beside):
            parts[f"beside_{number}"] = self._beside(number, measure)
        for number, ranked in enumerate(board.lists):
            if ranked.table:
                parts[f"items_{number}"] = self._items(number, ranked)
        everyone = " union ".join(f"select {KEY} from {p}" for p in ("named", "shown", "whole") if p in parts)
        named = "".join(f" left join {part} using ({KEY})" for part in ("named", "shown") if part in parts)
        joined = "".join(f" left join {part} using ({KEY})" for part in parts if part not in ("named", "hourly"))
        written = ", ".join(
            f"{name} as {'materialized ' if name == 'whole' else ''}({text})" for name, text in parts.items()
        )
        windows = ", ".join(f"cast({self._window(hours)} as varchar) as window_{hours}" for hours in board.widths)
        lists = ("hour", *(f"trend_{number}" for number in range(len(board.trend)))) if board.trend else ()
        return f"""
            with {written},
            everyone as ({everyone}),
            known as (
                select {KEY}, {{'id': {KEY}, {self._known()}}} as known from everyone{named} where {KEY} is not null
            )
            select {KEY}, cast(to_json(known) as varchar) as known,
                {", ".join([windows, *(f"coalesce({name}, []) as {name}" for name in lists)])}
            from known{joined} order by {KEY}"""

    def _grouped(self, table: str, columns: Sequence[str]) -> str:
        """Return a query with one row for each entity of a table."""
        return f"select {self._key()}, {', '.join(columns)} from {_name(table)} group by 1"

    def _key(self) -> str:
        return f"cast({_name(self.board.entity.key)} as varchar) as {KEY}"

    def _shown(self) -> str:
        """Return a query that pivots the windows: for each, whether a row exists, and its measures and lists."""
        board = self.board
        found = [f"{self._text(board.windows, board.windows_label)} as shown_name"]
        found += [] if board.entity.table else self._names()
        for hours in board.widths:
            found.append(f"{self._only('count(*)', hours)} > 0 as there_{hours}")
            for number, measure in enumerate(board.shown):
                found.append(f"{self._only(_any(measure.column), hours)} as m{number}_{hours}")
            for number, ranked in enumerate(board.lists):
                if ranked.column:
                    found.append(f"{self._only(_any(ranked.column), hours)} as list{number}_{hours}")
        return self._grouped(board.windows, found)

    def _only(self, aggregate: str, hours: int) -> str:
        return f"{aggregate} filter (where {_name(self.board.hours)} = {hours})"

    def _text(self, table: str, column: str) -> str:
        """Return an entity's text from a column; NULL if the tick lacks the column."""
        return f"max({_name(column)})" if column in self.types[table] else "cast(null as varchar)"

    def _names(self) -> list[str]:
        fields = known_fields(self.board).items()
        return [f"{self._text(self.named_by, column)} as known_{name}" for name, column in fields]

    def _known(self) -> str:
        """Return the fields of an entity; without a name, it has the label in the table of windows."""
        fields = {name: _name(f"known_{name}") for name in known_fields(self.board)}
        fields["name"] = "coalesce(known_name, shown_name)"
        return ", ".join(f"{_text(name)}: {value}" for name, value in fields.items())

    def _hourly(self) -> str:
        """Return a query of the hours, as integers since 1970: from the table of hours, or by adding up slots.

        A slot's time is its end, so a slot that ends on the full hour belongs to the hour before.
        """
        board = self.board
        if board.by_hour is not None:
            columns = "".join(f", {_name(m.column)} as t{n}" for n, m in enumerate(board.trend))
            at = f"epoch_us({_name(board.by_hour.at)}) // 3600000000"
            return f"select {self._key()}, {at} as hour{columns} from {_name(board.by_hour.table)}"
        assert board.by_slot is not None
        sums = "".join(f", sum({_name(m.column)}) as t{n}" for n, m in enumerate(board.trend))
        at = f"(epoch_us({_name(board.by_slot.at)}) - 1) // 3600000000"
        return f"select {self._key()}, {at} as hour{sums} from {_name(board.by_slot.table)} group by 1, 2"

    def _whole(self) -> str:
        """Return a query that adds up the full hours of each span and lists the trend's, in one pass over the hours."""
        measures = range(len(self.board.trend))
        trend = f"hour >= {_hours(trend_start(self.as_of))} and hour < {_hours(self.as_of, up=True)}"
        sums = [
            f"sum(t{n}) filter (hour >= {_hours(span.start)} and hour < {_hours(span.end)}) as whole{n}_{number}"
            for number, span in enumerate(self.compared)
            for n in measures
        ]
        lists = [
            f"list(hour) filter ({trend}) as hour",
            *(f"list(t{n}) filter ({trend}) as trend_{n}" for n in measures),
        ]
        return f"select {KEY}, {', '.join([*sums, *lists])} from hourly group by 1"

    def _begun(self, table: str, at: str) -> str:
        """Return a query with, for each span, the partial hour at its end minus the one at its start.

        `_whole` counts the hour at the start in full and omits the one at the end; this corrects both.
        """
        sums, at = [], _name(at)
        for number, span in enumerate(self.compared):
            at_start = f"{at} > {_at(hour_of(span.start))} and {at} <= {_at(span.start)}"
            at_end = f"{at} > {_at(hour_of(span.end))} and {at} <= {_at(span.end)}"
            for n, measure in enumerate(self.board.trend):
                ends, starts = (
                    f"coalesce(sum({_name(measure.column)}) filter ({when}), 0)" for when in (at_end, at_start)
                )
                sums.append(f"{ends} - {starts} as begun{n}_{number}")
        return self._grouped(table, sums)

    def _beside(self, number: int, measure: Measure) -> str:
        """Return a query that pivots the windows of a measure in another table."""
        found = []
        for hours in self.board.widths:
            found.append(f"{self._only('count(*)', hours)} > 0 as there_b{number}_{hours}")
            found.append(f"{self._only(_any(measure.column), hours)} as b{number}_{hours}")
        return self._grouped(measure.table, found)

    def _items(self, number: int, ranked: Ranked) -> str:
        """Return a query of each window's first items, from a table with a row for each item."""
        types = self.types[ranked.table]
        columns = [c for c in (ranked.item, ranked.label, ranked.value, ranked.money) if c]
        fields = ", ".join(f"{_text(c)}: {_value(types[c], _name(c))}" for c in dict.fromkeys(columns))
        order = f"{_name(ranked.value)} desc nulls last, {_name(ranked.item)}"
        found = f"list({{{fields}}} order by {order})[:{MOST_ITEMS}]"
        sides = ", ".join(f"any_value(items) filter (hours = {w}) as list{number}_{w}" for w in self.board.widths)
        inner = f"select {self._key()}, {_name(self.board.hours)} as hours, {found} as items from {_name(ranked.table)}"
        return f"select {KEY}, {sides} from ({inner} group by 1, 2) group by 1"

    def _window(self, hours: int) -> str:
        board, windows = self.board, self.types[self.board.windows]
        fields = {
            board.entity.name: "known",
            "tick": str(self.tick),
            "as_of": _text(iso(self.as_of)),
            "hours": str(hours),
            "complete": "false" if hours in self.incomplete else "true",
            **({} if self.complete_to is None else {"complete_to": _text(iso(self.complete_to))}),
        }
        for number, measure in enumerate(board.shown):
            kind = windows[measure.column]
            fields[measure.name] = _measure(measure, kind, f"m{number}_{hours}", f"there_{hours}")
        for number, ranked in enumerate(board.lists):
            items = f"coalesce(list{number}_{hours}, [])"
            fields[ranked.name] = _listed(windows[ranked.column], items) if ranked.column else items
        for number, span in enumerate(self.compared):
            if span.hours == hours:
                fields[span.name] = self._compared(number, span)
        for number, measure in enumerate(board.beside):
            kind = self.types[measure.table][measure.column]
            fields[measure.name] = _measure(measure, kind, f"b{number}_{hours}", f"there_b{number}_{hours}")
        return f"to_json({{{', '.join(f'{_text(name)}: {value}' for name, value in fields.items())}}})"

    def _compared(self, number: int, span: Span) -> str:
        """Return a span's sums and the window's relative change; NULL if the facts begin after the span's start."""
        if self.since and iso(hour_of(span.start)) < self.since:
            return "null"
        fields = {"from": _text(iso(span.start)), "to": _text(iso(span.end))}
        changes = {}
        windows, board = self.types[self.board.windows], self.board
        for n, measure in enumerate(board.trend):
            kind = windows[measure.column]
            before = f"(coalesce(whole{n}_{number}, 0) + coalesce(begun{n}_{number}, 0))"
            place = board.shown.index(measure)
            now = f"case when there_{span.hours} then m{place}_{span.hours} else 0 end"
            fields[measure.name] = _sum(kind, before)
            changes[f"{measure.name}_change"] = _share(now, before)
        return f"{{{', '.join(f'{_text(name)}: {value}' for name, value in (fields | changes).items())}}}"


def _name(column: str) -> str:
    return identifier(column, "duckdb")


def _text(text: str) -> str:
    return string(text, "duckdb")


def _any(column: str) -> str:
    return f"any_value({_name(column)})"


def _at(moment: datetime) -> str:
    return timestamp(moment, "duckdb")


def _hours(moment: datetime, *, up: bool = False) -> int:
    """Return the number of full hours from 1970 to a time; `up` counts a partial hour too."""
    return (ceil if up else floor)(moment.timestamp() / 3600)


def _value(kind: str, value: str) -> str:
    """Return SQL of a value in answers: a decimal as text, which loses no digit; NULL for NaN and infinity."""
    if kind.startswith("decimal"):
        return f"cast({value} as varchar)"
    return f"case when isfinite({value}) then {value} end" if kind in ("float", "double") else value


def _sum(kind: str, value: str) -> str:
    """Return SQL of a sum of values of a type, as answers have it."""
    if kind.startswith("decimal"):
        return f"cast(cast({value} as decimal(38, {_scale(kind)})) as varchar)"
    return _value(kind, f"cast({value} as double)") if kind in ("float", "double") else f"cast({value} as hugeint)"


def _scale(kind: str) -> int:
    return int(kind.removesuffix(")").rpartition(",")[2]) if "," in kind else 0


def _measure(measure: Measure, kind: str, value: str, there: str) -> str:
    """Return SQL of a measure in a window; without a row, an additive measure is 0."""
    shown = _value(kind, value)
    if not measure.adds_up:
        return shown
    zero = _text(f"{0:.{_scale(kind)}f}") if kind.startswith("decimal") else "0"
    return f"case when {there} then {shown} else {zero} end"


def _listed(kind: str, items: str) -> str:
    """Return SQL of a list of structs; unchanged if no field needs conversion."""
    fields = fields_of(kind) or {}
    written = {name: _value(of, f"item[{_text(name)}]") for name, of in fields.items()}
    if all(text == f"item[{_text(name)}]" for name, text in written.items()):
        return items
    return f"[{{{', '.join(f'{_text(name)}: {text}' for name, text in written.items())}}} for item in {items}]"


def _share(now: str, before: str) -> str:
    """Return SQL of a relative change; NULL if the value before isn't positive."""
    then = f"cast({before} as double)"
    share = f"round((cast({now} as double) - {then}) / {then}, 4)"
    return f"case when {then} > 0 and isfinite({then}) and isfinite({share}) then {share} end"


def trend_start(as_of: datetime) -> datetime:
    """Return the first hour of the trend."""
    return hour_of(as_of - timedelta(hours=TREND_HOURS))


def trend(board: Dashboard, known: str, tick: int, as_of: datetime, lists: Mapping[str, Sequence[Any]]) -> str:
    """Return the hours of an entity as JSON, in order. `lists` are the list columns of its row from `answers_sql`."""
    columns = [lists[f"trend_{number}"] for number in range(len(board.trend))]
    rows = sorted(zip(lists["hour"], *columns, strict=True), key=lambda row: row[0])
    answer: dict[str, Any] = {"tick": tick, "as_of": iso(as_of), "from": iso(trend_start(as_of))}
    answer["hour_at"] = [iso(EPOCH + timedelta(hours=row[0])) for row in rows]
    for number, measure in enumerate(board.trend, 1):
        answer[measure.name] = [_plain(row[number], measure.whole) for row in rows]
    return f'{{"{board.entity.name}":{known},{json.dumps(answer, separators=(",", ":"))[1:]}'


def _plain(value: Any, whole: bool) -> Any:
    """Return a value of the trend for JSON. Sums of integers arrive as decimals, since they may exceed 64 bits."""
    if isinstance(value, Decimal):
        return int(value) if whole else f"{value:f}"
    return None if isinstance(value, float) and not isfinite(value) else value


def behind(ranked: Ranked, tables: Mapping[str, Relation], as_of: datetime, hours: int) -> Mapping[str, Relation]:
    """Return the tables of a list computed on demand, the slots narrowed to a window."""
    assert ranked.everything is not None
    slots, names = ranked.everything.slots, ranked.everything.names
    found = {slots.table: replace(tables[slots.table], ranges=((slots.at, as_of - timedelta(hours=hours), as_of),))}
    return found | ({names: tables[names]} if names else {})


def items_sql(
    board: Dashboard, ranked: Ranked, tables: Mapping[str, Relation], key: str, as_of: datetime, hours: int
) -> str:
    """Return SQL that adds up an entity's items in a window as JSON: at most `MOST_LISTED`, highest value first."""
    assert ranked.everything is not None
    table, at, money = ranked.everything.slots.table, _name(ranked.everything.slots.at), ranked.everything.money
    types = {column.name: column.type for column in tables[table].columns}
    item, join = f"slots.{_name(ranked.item)}", ""
    fields = {ranked.item: (item, "item")}
    if ranked.label:
        label = f"max(slots.{_name(ranked.label)})" if ranked.label in types else "cast(null as varchar)"
        if names := ranked.everything.names:
            label = "any_value(named.label)"
            columns = f"{_name(ranked.item)} as item, max({_name(ranked.label)}) as label"
            join = f"left join (select {columns} from {_name(names)} group by 1) as named on named.item = {item}"
        fields[ranked.label] = (label, "label")
    fields[ranked.value] = (f"sum(slots.{_name(ranked.value)})", _sum(types[ranked.value], "value"))
    if money:
        fields[money] = (f"sum(slots.{_name(money)})", _sum(types[money], "money"))
    inner = ("item", "label", "value", "money") if ranked.label else ("item", "value", "money")
    found = ", ".join(f"{made} as {name}" for (made, _), name in zip(fields.values(), inner, strict=False))
    shown = ", ".join(f"{_text(name)}: {written}" for name, (_, written) in fields.items())
    return f"""
        with found as (
            select {found} from {_name(table)} as slots {join}
            where cast(slots.{_name(board.entity.key)} as varchar) = {_text(key)}
                and slots.{at} > {_at(as_of - timedelta(hours=hours))} and slots.{at} <= {_at(as_of)}
            group by 1 order by value desc nulls last, item limit {MOST_LISTED}
        )
        select cast(to_json({{{shown}}}) as varchar) as body from found order by value desc nulls last, item"""
