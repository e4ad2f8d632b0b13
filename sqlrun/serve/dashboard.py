"""What the owners' dashboard reads of a tick, and the SQL that makes its answers. Pure.

All answers of a tick are computed when it is published, in one statement: a request finds bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.transpile.writer import identifier, string, timestamp

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
    """Return the start of a time's hour."""
    return moment.replace(minute=0, second=0, microsecond=0)


def iso(moment: datetime) -> str:
    """Write a time as answers have it."""
    return moment.astimezone(timezone.utc).strftime(ISO)


def hour_range(as_of: datetime, widths: Sequence[int]) -> tuple[datetime, datetime]:
    """Return which hours' facts are read: the oldest and the newest."""
    starts = [span.start for span in spans(as_of, widths)]
    return hour_of(min(*starts, trend_start(as_of))), as_of


def edges(as_of: datetime, widths: Sequence[int]) -> tuple[tuple[datetime, datetime], ...]:
    """List the begun hours at the ends of the spans, (start, end]: of these the slots are read, of others the hours."""
    moments = sorted({moment for span in spans(as_of, widths) for moment in (span.start, span.end)})
    return tuple((hour_of(moment), moment) for moment in moments if moment != hour_of(moment))


def answers_sql(tables: Mapping[str, Relation], tick: int, as_of: datetime, widths: Sequence[int], since: str) -> str:
    """Select a row for each restaurant that any table has, in the order of ids.

    Columns: the id; `known`, what is known of it as JSON; `window_<hours>`, the answer for each width as JSON; `hour`,
    `n_orders` and `total_sales`, lists of its hours (since 1970, in no order) and what was ordered in them. `since`
    says when the facts begin (ISO, "" where that isn't known): what began before can't be compared.
    """
    compared = spans(as_of, widths)
    windows = ", ".join(
        f"cast({_window(tick, as_of, hours, compared, since)} as varchar) as window_{hours}" for hours in widths
    )
    rows = ", ".join(
        f"any_value({column}) filter (window_hours = {hours}) as {column}_{hours}"
        for hours in widths
        for column in ("n_orders", "total_sales", "top_dishes")
    )
    shown = "max(restaurant_name)" if _has(tables, WINDOWS, "restaurant_name") else "cast(null as varchar)"
    return f"""
        with whole as materialized ({_whole_sql(as_of, compared)}),
        begun as ({_begun_sql(compared)}),
        shown as (select {OWNER}, {shown} as shown_name, {rows} from {WINDOWS} group by {OWNER}),
        everyone as (select {OWNER} from {NAMES} union select {OWNER} from shown union select {OWNER} from whole),
        known as (
            select {OWNER}, {{'id': {OWNER}, {_known(tables)}}} as known
            from everyone left join {NAMES} using ({OWNER}) left join shown using ({OWNER})
            where {OWNER} is not null
        )
        select {OWNER}, cast(to_json(known) as varchar) as known, {windows},
            coalesce(hour, []) as hour, coalesce(hour_orders, []) as n_orders, coalesce(hour_sales, []) as total_sales
        from known left join shown using ({OWNER}) left join whole using ({OWNER}) left join begun using ({OWNER})
        order by {OWNER}"""


def _has(tables: Mapping[str, Relation], table: str, column: str) -> bool:
    return any(c.name == column for c in tables[table].columns)


def _known(tables: Mapping[str, Relation]) -> str:
    fields = {}
    for name, column in KNOWN.items():
        there = _has(tables, NAMES, column)
        fields[name] = f"{NAMES}.{identifier(column, 'duckdb')}" if there else "cast(null as varchar)"
    fields["name"] = f"coalesce({fields['name']}, shown_name)"
    return ", ".join(f"'{name}': {value}" for name, value in fields.items())


def _whole_sql(as_of: datetime, compared: Sequence[Span]) -> str:
    """Add up the whole hours of each span, and list those of the trend, in one pass over the hours."""
    trend = f"hour_at >= {_at(trend_start(as_of))} and hour_at < {_at(as_of)}"
    sums = [
        f"sum({column}) filter (hour_at >= {_at(hour_of(span.start))} and hour_at < {_at(hour_of(span.end))}) as {name}"
        for number, span in enumerate(compared)
        for column, name in (("n_orders", f"whole_n_{number}"), ("total_sales", f"whole_s_{number}"))
    ]
    return f"""
        select {OWNER}, {", ".join(sums)},
            list(epoch_us(hour_at) // 3600000000) filter ({trend}) as hour,
            list(n_orders) filter ({trend}) as hour_orders,
            list(total_sales) filter ({trend}) as hour_sales
        from {HOURS} group by {OWNER}"""


def _begun_sql(compared: Sequence[Span]) -> str:
    """Add up, for each span, the begun hour at its end without the one at its start."""
    sums = []
    for number, span in enumerate(compared):
        at_start = f"slot_at > {_at(hour_of(span.start))} and slot_at <= {_at(span.start)}"
        at_end = f"slot_at > {_at(hour_of(span.end))} and slot_at <= {_at(span.end)}"
        for column, name in (("n_orders", f"begun_n_{number}"), ("total_sales", f"begun_s_{number}")):
            signs = f"case when {at_end} then {column} else 0 end - case when {at_start} then {column} else 0 end"
            sums.append(f"sum({signs}) as {name}")
    return f"select {OWNER}, {', '.join(sums)} from {SLOTS} group by {OWNER}"


def _at(moment: datetime) -> str:
    return timestamp(moment, "duckdb")


def _window(tick: int, as_of: datetime, hours: int, compared: Sequence[Span], since: str) -> str:
    then = {span.name: _compared(number, span, since) for number, span in enumerate(compared) if span.hours == hours}
    return f"""to_json({{
        'restaurant': known,
        'tick': {tick},
        'as_of': {string(iso(as_of), "duckdb")},
        'hours': {hours},
        'n_orders': coalesce(n_orders_{hours}, 0),
        'total_sales': coalesce(cast(total_sales_{hours} as varchar), '0.00'),
        'top_dishes': coalesce(top_dishes_{hours}, []),
        'before': {then["before"]},
        'last_week': {then["last_week"]}
    }})"""


def _compared(number: int, span: Span, since: str) -> str:
    """Write what a window is compared with, and how much more it has as a share; NULL where the facts begin later."""
    if since and iso(hour_of(span.start)) < since:
        return "null"
    n, s = (f"coalesce(whole_{kind}_{number}, 0) + coalesce(begun_{kind}_{number}, 0)" for kind in ("n", "s"))
    return (
        f"{{'from': {string(iso(span.start), 'duckdb')}, 'to': {string(iso(span.end), 'duckdb')}, "
        f"'n_orders': cast({n} as bigint), 'total_sales': cast(cast({s} as decimal(18, 2)) as varchar), "
        f"'n_orders_change': {_share(f'n_orders_{span.hours}', n)}, "
        f"'total_sales_change': {_share(f'total_sales_{span.hours}', s)}}}"
    )


def _share(column: str, before: str) -> str:
    return f"round(cast(coalesce({column}, 0) - ({before}) as double) / nullif(cast({before} as double), 0), 4)"


def trend_start(as_of: datetime) -> datetime:
    """Return which hour the trend begins with."""
    return hour_of(as_of - timedelta(hours=TREND_HOURS))


def trend(known: str, tick: int, as_of: datetime, hours: Mapping[str, Sequence[Any]]) -> str:
    """Write the hours of a restaurant as JSON, in order; `hours` has a row's lists of `answers_sql`."""
    rows = sorted(zip(hours["hour"], hours["n_orders"], hours["total_sales"], strict=True))
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    lists = {
        "hour_at": [iso(epoch + timedelta(hours=hour)) for hour, _, _ in rows],
        "n_orders": [orders for _, orders, _ in rows],
        "total_sales": [str(sales) for _, _, sales in rows],
    }
    told = {"tick": tick, "as_of": iso(as_of), "from": iso(trend_start(as_of)), **lists}
    return f'{{"restaurant":{known},{json.dumps(told, separators=(",", ":"))[1:]}'
