"""What the owners' dashboard reads of a tick, and the SQL that makes its answers. Pure.

All answers of a tick are computed when it is published, in few statements: a request finds bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from sqlrun.engines.protocol import Relation
from sqlrun.incremental.sql import identifier, string, timestamp

OWNER = "restaurant_id"
WINDOWS, HOURS, SLOTS, NAMES = "restaurant_windows", "fct_restaurant_hours", "fct_restaurant_slots", "restaurants"
NEEDS: Mapping[str, tuple[str, ...]] = {
    WINDOWS: ("window_hours", OWNER, "n_orders", "total_sales", "top_dishes"),
    HOURS: (OWNER, "hour_at", "n_orders", "total_sales"),
    SLOTS: (OWNER, "slot_at", "n_orders", "total_sales"),
    NAMES: (OWNER,),
}
# What is known of a restaurant, where the list of restaurants has it: the name in the answer, the column.
KNOWN = {"name": "restaurant_name", "city": "city", "currency": "currency", "time_zone": "time_zone"}
WEEK = timedelta(hours=168)
TREND_HOURS = 168
ISO = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Span:
    """A past stretch of time, (start, end], that a window of so many hours is compared with."""

    hours: int
    name: str  # before: the same length just before. last_week: the same hours a week ago.
    start: datetime
    end: datetime


def spans(as_of: datetime, widths: Sequence[int]) -> tuple[Span, ...]:
    """List what each window is compared with.

    >>> [(s.name, f"{s.start:%d %H}", f"{s.end:%d %H}") for s in spans(datetime(2026, 5, 14, 12), [24])]
    [('before', '12 12', '13 12'), ('last_week', '06 12', '07 12')]
    """
    found = []
    for hours in widths:
        width = timedelta(hours=hours)
        found.append(Span(hours, "before", as_of - 2 * width, as_of - width))
        found.append(Span(hours, "last_week", as_of - WEEK - width, as_of - WEEK))
    return tuple(found)


def hour_of(moment: datetime) -> datetime:
    """Give the start of a time's hour."""
    return moment.replace(minute=0, second=0, microsecond=0)


def iso(moment: datetime) -> str:
    """Write a time as answers have it."""
    return moment.astimezone(timezone.utc).strftime(ISO)


def hour_range(as_of: datetime, widths: Sequence[int]) -> tuple[datetime, datetime]:
    """Tell which hours' facts are read: the oldest and the newest."""
    starts = [span.start for span in spans(as_of, widths)]
    return hour_of(min(*starts, as_of - timedelta(hours=TREND_HOURS))), as_of


def edges(as_of: datetime, widths: Sequence[int]) -> tuple[tuple[datetime, datetime], ...]:
    """List the begun hours at the ends of the spans, (start, end]: of these the slots are read, of others the hours."""
    moments = sorted({moment for span in spans(as_of, widths) for moment in (span.start, span.end)})
    return tuple((hour_of(moment), moment) for moment in moments if moment != hour_of(moment))


def restaurants_sql(tables: Mapping[str, Relation]) -> str:
    """Select each restaurant that any table has, with what is known of it as JSON; in the order of ids."""
    known = {name: _column(tables, NAMES, column) for name, column in KNOWN.items()}
    if WINDOWS in tables and any(c.name == "restaurant_name" for c in tables[WINDOWS].columns):
        known["name"] = f"coalesce({known['name']}, shown.restaurant_name)"
        shown = f"left join (select {OWNER}, max(restaurant_name) as restaurant_name from {WINDOWS} group by all) shown"
        shown += f" using ({OWNER})"
    else:
        shown = ""
    fields = ", ".join(f"{string(name, 'duckdb')}: {value}" for name, value in known.items())
    return f"""
        with everyone as (
            select {OWNER} from {NAMES} union select {OWNER} from {WINDOWS} union select {OWNER} from {HOURS}
        )
        select everyone.{OWNER}, {{'id': everyone.{OWNER}, {fields}}} as known
        from everyone left join {NAMES} using ({OWNER}) {shown}
        where everyone.{OWNER} is not null
        order by everyone.{OWNER}"""


def _column(tables: Mapping[str, Relation], table: str, column: str) -> str:
    there = any(c.name == column for c in tables[table].columns)
    return f"{table}.{identifier(column, 'duckdb')}" if there else "cast(null as varchar)"


def windows_sql(tables: Mapping[str, Relation], tick: int, as_of: datetime, widths: Sequence[int], since: str) -> str:
    """Select the answer of each restaurant and width as JSON, in the order of ids and then of `widths`.

    `since` says when the facts begin (ISO, "" where that isn't known): what began before can't be compared.
    """
    compared = spans(as_of, widths)
    listed = ", ".join(f"({place}, {hours})" for place, hours in enumerate(widths))
    return f"""
        with everyone as ({restaurants_sql(tables)}),
        widths(place, window_hours) as (values {listed}),
        past as ({_past_sql(compared)})
        select cast(to_json({{
            'restaurant': known,
            'tick': {tick},
            'as_of': {string(iso(as_of), "duckdb")},
            'hours': widths.window_hours,
            'n_orders': coalesce(n_orders, 0),
            'total_sales': coalesce(cast(total_sales as varchar), '0.00'),
            'top_dishes': coalesce(top_dishes, []),
            'before': {_compared(compared, "before", since)},
            'last_week': {_compared(compared, "last_week", since)}
        }}) as varchar) as body
        from everyone cross join widths
        left join {WINDOWS} using ({OWNER}, window_hours)
        left join past using ({OWNER})
        order by {OWNER}, place"""


def _past_sql(compared: Sequence[Span]) -> str:
    """Add up each span: the whole hours in it, without the begun hour at its start, with the one at its end."""
    names = [f"{kind}_{number}" for number in range(len(compared)) for kind in ("n", "s")]
    whole, begun = [], []
    for number, span in enumerate(compared):
        inside = f"hour_at >= {_at(hour_of(span.start))} and hour_at < {_at(hour_of(span.end))}"
        at_start = f"slot_at > {_at(hour_of(span.start))} and slot_at <= {_at(span.start)}"
        at_end = f"slot_at > {_at(hour_of(span.end))} and slot_at <= {_at(span.end)}"
        for kind, column in (("n", "n_orders"), ("s", "total_sales")):
            whole.append(f"sum({column}) filter ({inside}) as {kind}_{number}")
            signs = f"case when {at_end} then {column} else 0 end - case when {at_start} then {column} else 0 end"
            begun.append(f"sum({signs}) as {kind}_{number}")
    added = ", ".join(f"coalesce(sum({name}), 0) as {name}" for name in names)
    return f"""
        select {OWNER}, {added} from (
            select {OWNER}, {", ".join(whole)} from {HOURS} group by {OWNER}
            union all by name
            select {OWNER}, {", ".join(begun)} from {SLOTS} group by {OWNER}
        ) group by {OWNER}"""


def _at(moment: datetime) -> str:
    return timestamp(moment, "duckdb")


def _compared(compared: Sequence[Span], name: str, since: str) -> str:
    """Write what a window is compared with, and how much more it has as a share; NULL where the facts begin later."""
    cases = []
    for number, span in enumerate(compared):
        if span.name != name or (since and iso(hour_of(span.start)) < since):
            continue
        n, s = f"coalesce(n_{number}, 0)", f"coalesce(s_{number}, 0)"
        cases.append(
            f"when {span.hours} then {{"
            f"'from': {string(iso(span.start), 'duckdb')}, 'to': {string(iso(span.end), 'duckdb')}, "
            f"'n_orders': cast({n} as bigint), 'total_sales': cast(cast({s} as decimal(18, 2)) as varchar), "
            f"'n_orders_change': {_share('n_orders', n)}, 'total_sales_change': {_share('total_sales', s)}}}"
        )
    return f"case window_hours {' '.join(cases)} end" if cases else "null"


def _share(column: str, before: str) -> str:
    return f"round(cast(coalesce({column}, 0) - {before} as double) / nullif(cast({before} as double), 0), 4)"


def hours_sql(tables: Mapping[str, Relation], tick: int, as_of: datetime) -> str:
    """Select each restaurant's hours with orders as JSON, column by column, in the order of ids."""
    start = hour_of(as_of - timedelta(hours=TREND_HOURS))
    written = f"strftime(make_timestamp(epoch_us(hour_at)), {string(ISO, 'duckdb')})"
    return f"""
        with everyone as ({restaurants_sql(tables)}),
        lists as (
            select {OWNER},
                list({written} order by hour_at) as hour_at,
                list(n_orders order by hour_at) as n_orders,
                list(cast(total_sales as varchar) order by hour_at) as total_sales
            from {HOURS} where hour_at >= {_at(start)} and hour_at < {_at(as_of)} group by {OWNER}
        )
        select cast(to_json({{
            'restaurant': known,
            'tick': {tick},
            'as_of': {string(iso(as_of), "duckdb")},
            'from': {string(iso(start), "duckdb")},
            'hour_at': coalesce(hour_at, []),
            'n_orders': coalesce(n_orders, []),
            'total_sales': coalesce(total_sales, [])
        }}) as varchar) as body
        from everyone left join lists using ({OWNER})
        order by {OWNER}"""
