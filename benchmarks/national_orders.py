"""Orders of a whole country, drawn and added up by DuckDB SQL. Shell: a DuckDB file, JSON lines.

The draw and the right answers share no code with sqlrun: lines are written from the tables `orders` and `events`, and
`right` computes the dashboard from the same tables, in cents, for any tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

STEP = 300
TICKS = 288
WINDOWS = (1, 24, 168)
# The first tick of the measured day ends five minutes after this time.
DAY = datetime(2026, 11, 2, tzinfo=timezone.utc)
# A broken line in each file, as a connection that ends leaves one.
BROKEN = '{"event_id":"e1","order_id":"o1","vers\n'

MACROS = """
create macro draw(id, salt) as (hash(id * 64 + salt) >> 11) / 9007199254740992.0;
create macro dish(restaurant, pick) as 1 + (hash(restaurant * 2 + 1) % 40 + pick * 3) % 40;
create macro cents(restaurant, dish) as 300 + hash(restaurant * 64 + dish) % 1500;
create macro items(id, restaurant, variant) as list_transform(
    range(1, 2 + cast(floor(draw(id, 20 + variant) * draw(id, 22) * 5) as bigint)),
    lambda line: struct_pack(
        dish := dish(restaurant, hash(id * 64 + variant * 8 + line) % 12),
        quantity := 1 + cast(floor(3 * pow(draw(id, 30 + variant * 8 + line), 3)) as integer)
    )
);
"""

ORDERS = """
create table orders as
select
    id,
    begins + cast(floor(300 * draw(id, 1)) as bigint) + 1 as placed_at,
    cast(floor({restaurants} * pow(draw(id, 2), 1.3)) as bigint) as restaurant,
    cast(floor(5000000 * draw(id, 3)) as bigint) as guest
from (select begins, unnest(range(first, first + orders)) as id from slots)
"""

# A fiftieth takes up to three days; a hundredth is sent twice.
EVENTS = """
create table events as
with drawn as (
    select
        id,
        placed_at,
        draw(id, 4) < 0.01 as corrected,
        draw(id, 5) < 0.005 as cancelled,
        draw(id, 6) < 0.3 as delivered,
        1 + cast(floor(89 * draw(id, 7)) as bigint)
            + case when draw(id, 8) < 0.02 then cast(floor(259200 * draw(id, 9)) as bigint) else 0 end as delay
    from orders
),

single as (
    select id, 1 as version, 'placed' as status, 0 as variant, placed_at + delay as arrived from drawn
    union all
    select id, 2, 'updated', 1, placed_at + 60 + cast(floor(7200 * draw(id, 10)) as bigint) from drawn where corrected
    union all
    select id, 2 + corrected::integer, case when cancelled then 'cancelled' else 'delivered' end, corrected::integer,
        placed_at + 1200 + cast(floor(1800 * draw(id, 11)) as bigint)
    from drawn where cancelled or delivered
)

select * from single
union all
select id, version, status, variant, arrived + cast(floor(3600 * draw(id, 13)) as bigint)
from single where draw(id, 12 + version * 3) < 0.01
"""

LINES = """
copy (
    select
        printf('e%d-%d', id, version) as event_id,
        printf('o%d', id) as order_id,
        version,
        printf('r%06d', restaurant) as restaurant_id,
        printf('c%d', guest) as customer_id,
        strftime(make_timestamp(placed_at * 1000000), '%Y-%m-%dT%H:%M:%SZ') as ordered_at,
        status,
        list_transform(items(id, restaurant, variant), lambda item: struct_pack(
            dish_id := printf('d%03d', item.dish),
            quantity := item.quantity,
            unit_price := printf('%d.%02d', cents(restaurant, item.dish) // 100, cents(restaurant, item.dish) % 100)
        )) as items
    from events join orders using (id)
    where arrived > {after} and arrived <= {until} and placed_at > {after} - 700000
    order by arrived, id, version
) to '{file}' (format json)
"""

RIGHT = """
with newest as (
    select id, any_value(placed_at) as placed_at, any_value(restaurant) as restaurant,
        arg_max(struct_pack(status := status, variant := variant), version) as last
    from events join orders using (id)
    where arrived <= {now} and placed_at <= {now} and placed_at > {now} - {longest} * 3600
    group by id
),

counted as (
    select *, items(id, restaurant, last.variant) as basket from newest where last.status <> 'cancelled'
),

windows as (select unnest({windows}) as hours),

totals as (
    select hours, restaurant, count(*) as n_orders,
        sum(list_sum(list_transform(basket, lambda i: i.quantity * cents(restaurant, i.dish)))) as cents
    from counted join windows on placed_at > {now} - hours * 3600
    group by all
),

dishes as (
    select restaurant, dish, hours, sum(quantity) as quantity
    from (select placed_at, restaurant, unnest(basket, recursive := true) from counted)
    join windows on placed_at > {now} - hours * 3600
    group by all
),

best as (
    select hours, restaurant, string_agg(printf('d%03d x %d', dish, cast(quantity as bigint)), ', ' order by place) as best
    from (select *, row_number() over (partition by hours, restaurant order by quantity desc, dish) as place from dishes)
    where place <= 3
    group by all
)

select hours, printf('r%06d', restaurant) as restaurant, n_orders, cast(cents as bigint) as cents, best
from totals join best using (hours, restaurant)
"""

FOUND = """
select window_hours as hours, restaurant_id as restaurant, n_orders, cast(total_sales * 100 as bigint) as cents,
    array_to_string(list_transform(list_sort(top_dishes), lambda d: printf('%s x %d', d.dish_id, d.quantity)), ', ') as best
from mart
"""


@dataclass(frozen=True, slots=True)
class Country:
    """Size of a platform: restaurants, orders a tick in the mean and at the peak, and days before the measured one."""

    restaurants: int = 230_000
    mean: int = 5_800
    peak: int = 40_000
    days: int = 7

    def orders(self) -> list[int]:
        """Return the number of orders in each tick of a day: few at any time, lunch, and a sharp dinner.

        >>> day = Country().orders()
        >>> len(day), sum(day) // 288, max(day)
        (288, 5800, 40000)
        """
        low, total = self.mean * 0.25, self.mean * TICKS
        lunch = [self.mean * 1.5 * math.exp(-(((n - 148) / 12) ** 2) / 2) for n in range(TICKS)]
        # The dinner's width follows from the sum.
        width = (total - low * TICKS - sum(lunch)) / ((self.peak - low) * math.sqrt(2 * math.pi))
        dinner = [(self.peak - low) * math.exp(-(((n - 231) / width) ** 2) / 2) for n in range(TICKS)]
        found = [int(low + a + b) for a, b in zip(lunch, dinner, strict=True)]
        found[231] = self.peak
        # Rounding is corrected where it doesn't show.
        found[0] += total - sum(found)
        return found


class Orders:
    """The orders of a country in a DuckDB file, and what is right at any tick."""

    def __init__(self, folder: Path, country: Country, memory: str = "4GB") -> None:
        import duckdb

        self.country = country
        self.begin = DAY - timedelta(days=country.days)
        self._db = duckdb.connect(str(folder / "orders.duckdb"))
        self._db.execute(f"set memory_limit = '{memory}'; set threads = 2; set preserve_insertion_order = false")
        self._db.execute(MACROS)
        begin, first, rows = int(self.begin.timestamp()), 0, []
        # One tick more than the day: the last events of its last orders.
        for number, orders in enumerate(country.orders() * (country.days + 1)):
            rows.append((begin + number * STEP, first, orders))
            first += orders
        self.count = first
        self._db.execute("create table slots (begins bigint, first bigint, orders bigint)")
        listed = ", ".join(map(str, rows))
        self._db.execute(f"insert into slots values {listed}")
        self._db.execute(ORDERS.format(restaurants=country.restaurants))
        self._db.execute(EVENTS)

    def write(self, after: datetime, until: datetime, file: Path) -> int:
        """Write the lines that arrive in a span of time; return their number."""
        sql = LINES.format(after=_seconds(after), until=_seconds(until), file=file)
        count = int(self._db.execute(sql).fetchall()[0][0])
        with file.open("a") as lines:
            lines.write(BROKEN)
        return count + 1

    def wrong(self, mart: Any, now: datetime) -> tuple[int, int]:
        """Return the number of right rows at a tick, and of those that a mart (an Arrow table) lacks or has otherwise."""
        right = RIGHT.format(now=_seconds(now), longest=max(WINDOWS), windows=list(WINDOWS))
        self._db.register("mart", mart)
        self._db.execute(f"create or replace temp table right_rows as {right}")
        self._db.execute(f"create or replace temp table found_rows as {FOUND}")
        (rows,) = self._db.execute("select count(*) from right_rows").fetchall()[0]
        differing = "(from {0} except all from {1})"
        both = " union all ".join(
            differing.format(*pair) for pair in (("right_rows", "found_rows"), ("found_rows", "right_rows"))
        )
        (wrong,) = self._db.execute(f"select count(distinct (hours, restaurant)) from ({both})").fetchall()[0]
        return int(rows), int(wrong)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def seed(self, file: Path) -> None:
        """Write the list of restaurants."""
        with file.open("w") as lines:
            lines.write("restaurant_id,restaurant_name,city,currency,time_zone\n")
            for number in range(self.country.restaurants):
                lines.write(f"r{number:06d},Restaurant {number},Lisbon,EUR,Europe/Lisbon\n")

    def ticks(self) -> Iterator[tuple[datetime, datetime]]:
        """Yield the begin and the end of each tick of the measured day."""
        for number in range(TICKS):
            yield DAY + timedelta(seconds=number * STEP), DAY + timedelta(seconds=(number + 1) * STEP)


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
