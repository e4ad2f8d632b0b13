"""Order events as JSON lines; the arrivals of a minute are a function of the settings and that minute. Pure.

Orders are drawn for one hour of `ordered_at` at a time, by a counter-based generator keyed by (seed, hour). An
hour's draw decides the whole life of its orders: corrections, cancellation, delivery, and the arrival of each
event. The arrivals of a minute are a selection from the hours around it. Therefore a history made in pieces, by
several workers, or live, equals one made at once, byte for byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sqlrun.runtime.clock import MINUTES_PER_DAY
from sqlrun.simulate.broken_lines import broken
from sqlrun.simulate.catalogue import MENU_SIZE, menu, restaurant_id
from sqlrun.simulate.settings import Settings, from_minute

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Draw = Callable[[int], Floats]

CUSTOMERS = 50_000
STATUSES = ("placed", "updated", "delivered", "cancelled")
_PLACED, _UPDATED, _DELIVERED, _CANCELLED = range(4)
_HOUR = 3600
_MAX_LINES = 5
_MAX_QUANTITY = 4
_LINE_COUNTS = np.cumsum([0.35, 0.3, 0.2, 0.1, 0.05])
_QUANTITIES = np.cumsum([0.62, 0.25, 0.09, 0.04])
# Seconds between an order and its events: a late event arrives at most three days after its order.
_LATEST = 72 * _HOUR
_LATE_FROM = 600
_LAST_CHANGE = 48 * _HOUR
_FUTURE = 2 * _HOUR
_REPEAT_WITHIN = _HOUR
# Maximum minutes by which an event arrives after, or before, its order.
_REACH_BACK = (_LATEST + _REPEAT_WITHIN) // 60 + 1
_REACH_AHEAD = _FUTURE // 60
_MINUTE_AND_SECOND = tuple(f"{second // 60:02d}:{second % 60:02d}Z" for second in range(_HOUR))


@dataclass(frozen=True, slots=True)
class _World:
    """Data shared by all hours: the distribution of orders over the day, restaurants, dishes, and prepared text."""

    by_minute: Floats
    restaurants: Floats
    dishes: Floats
    restaurant_ids: tuple[str, ...]
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Orders:
    """The orders of one hour, sorted by time; a basket has up to five item codes (see `_World.items`).

    The first baskets belong to the orders, row by row; those of the corrections follow.
    """

    hour: int
    second: Ints
    restaurant: Ints
    customer: Ints
    codes: Ints
    sizes: Ints


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of one hour's orders; `breakage` is below 0 for a good line and otherwise selects the damage."""

    order: Ints
    version: Ints
    status: Ints
    basket: Ints
    arrived: Ints
    breakage: Floats

    def rows(self, rows: Ints) -> _Events:
        """Return these rows, in this order."""
        return _Events(
            self.order[rows],
            self.version[rows],
            self.status[rows],
            self.basket[rows],
            self.arrived[rows],
            self.breakage[rows],
        )


def events(settings: Settings, start: int, end: int) -> list[str]:
    """Return the lines, with line ends, that arrive after minute `start` and up to minute `end` (from 1970)."""
    return [line for _, lines in minutes(settings, start, end) for line in lines]


def minutes(settings: Settings, start: int, end: int | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the minutes after `start` up to `end`, or forever, each with the lines that arrive in it.

    Minute m has the arrivals after m - 1 and up to m. Memory: the lines of the overlapping hours only.
    """
    waiting: dict[int, list[str]] = {}
    hour = (start - _REACH_BACK) // 60
    for minute in itertools.count(start + 1):
        if end is not None and minute > end:
            return
        while hour * 60 <= minute + _REACH_AHEAD:
            _add_hour(settings, hour, start, end, waiting)
            hour += 1
        yield minute, waiting.pop(minute, [])


def start_for(settings: Settings, end: int, orders: int) -> int:
    """Return the minute (from 1970) at which a history with about `orders` orders before `end` starts."""
    world = _world(settings.restaurants, settings.zipf)
    days, rest = divmod(orders, settings.orders_per_day)
    start = end - int(days) * MINUTES_PER_DAY
    # Within a day the hours differ: an hour of the night has few orders.
    while rest > 0:
        start -= 1
        rest -= settings.orders_per_day * float(world.by_minute[start % MINUTES_PER_DAY])
    return start


def _add_hour(settings: Settings, hour: int, start: int, end: int | None, waiting: dict[int, list[str]]) -> None:
    """Add the lines of an hour's orders to the minutes of their arrival."""
    draw = _draws(settings.seed, hour)
    world = _world(settings.restaurants, settings.zipf)
    orders = _draw_orders(settings, world, hour, draw)
    corrected = draw(len(orders.second)) < settings.correction_rate
    orders = _with_corrections(orders, np.flatnonzero(corrected), draw)
    happened = _draw_events(settings, orders, corrected, draw)
    minute = -(-happened.arrived // 60)
    # Only lines in the range become text: most of the hours before `start` cost no more than their draws.
    wanted = (minute > start) & (minute <= (end if end is not None else np.iinfo(np.int64).max))
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(happened.arrived[rows], kind="stable")]
    lines = _lines(world, orders, happened.rows(rows))
    starts, firsts = np.unique(minute[rows], return_index=True)
    bounds = [*firsts.tolist(), len(lines)]
    for place, key in enumerate(starts.tolist()):
        waiting.setdefault(key, []).extend(lines[bounds[place] : bounds[place + 1]])


def _draws(seed: int, hour: int) -> Draw:
    """Return a source of numbers from 0 up to 1 that depends on this seed and hour only.

    It uses raw bits: numpy guarantees these for all versions, but not its Generator's conversions.
    """
    bits = np.random.Philox(key=np.array([seed, hour], dtype=np.uint64))
    return lambda count: (bits.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=4)
def _world(restaurants: int, zipf: float) -> _World:
    minute = np.arange(MINUTES_PER_DAY)
    # A day: few orders at any time, lunch around 12:00, a higher and longer dinner around 19:00 (UTC).
    lunch, dinner = np.exp(-(((minute - 720) / 60) ** 2) / 2), 1.3 * np.exp(-(((minute - 1140) / 75) ** 2) / 2)
    by_minute = 0.08 + lunch + dinner
    ids = tuple(restaurant_id(index) for index in range(restaurants))
    return _World(
        by_minute=by_minute / by_minute.sum(),
        restaurants=_zipf(restaurants, zipf),
        dishes=_zipf(MENU_SIZE, 1.0),
        restaurant_ids=ids,
        items=tuple(
            f'{{"dish_id":"{entry.dish_id}","quantity":{quantity},'
            f'"unit_price":"{entry.price // 100}.{entry.price % 100:02d}"}}'
            for restaurant in ids
            for entry in menu(restaurant)
            for quantity in range(1, _MAX_QUANTITY + 1)
        ),
    )


def _zipf(count: int, exponent: float) -> Floats:
    """Return the running sum of shares proportional to the rank to the power of `-exponent`."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.cumsum(weights / weights.sum())


def _pick(running: Floats, draws: Floats) -> Ints:
    """Return the places that draws select; the last place gets the rounding error."""
    return np.minimum(np.searchsorted(running, draws, side="right"), len(running) - 1).astype(np.int64)


def _draw_orders(settings: Settings, world: _World, hour: int, draw: Draw) -> _Orders:
    first = hour % 24 * 60
    shares = np.concatenate([[0.0], np.cumsum(world.by_minute[first : first + 60])])
    count = int(settings.orders_per_day * shares[-1] + draw(1)[0])
    second = np.sort(np.interp(draw(count), shares / shares[-1], np.arange(0, _HOUR + 1, 60)).astype(np.int64))
    restaurant = _pick(world.restaurants, draw(count))
    dish = _pick(world.dishes, draw(count * _MAX_LINES)).reshape(count, _MAX_LINES)
    quantity = _pick(_QUANTITIES, draw(count * _MAX_LINES)).reshape(count, _MAX_LINES)
    return _Orders(
        hour,
        np.minimum(second, _HOUR - 1),
        restaurant,
        (CUSTOMERS * draw(count) ** 2).astype(np.int64) + 1,
        (restaurant[:, None] * MENU_SIZE + dish) * _MAX_QUANTITY + quantity,
        1 + _pick(_LINE_COUNTS, draw(count)),
    )


def _with_corrections(orders: _Orders, corrected: Ints, draw: Draw) -> _Orders:
    """Add a basket for each corrected order: another dish, another quantity, or one line less."""
    count = len(corrected)
    codes, sizes = orders.codes[corrected].copy(), orders.sizes[corrected].copy()
    kind = (3 * draw(count)).astype(np.int64)
    row, line = np.arange(count), (sizes * draw(count)).astype(np.int64)
    dish_and_up, quantity = np.divmod(codes[row, line], _MAX_QUANTITY)
    restaurant, dish = np.divmod(dish_and_up, MENU_SIZE)
    other_dish = (dish + 1 + (draw(count) * (MENU_SIZE - 1)).astype(np.int64)) % MENU_SIZE
    other_quantity = (quantity + 1 + (draw(count) * (_MAX_QUANTITY - 1)).astype(np.int64)) % _MAX_QUANTITY
    # The only line of an order stays: without it the correction would be a cancellation.
    removed = (kind == 2) & (sizes > 1)
    new_dish = np.where(kind == 0, other_dish, dish)
    new_quantity = np.where(kind == 0, quantity, other_quantity)
    changed = (restaurant * MENU_SIZE + new_dish) * _MAX_QUANTITY + new_quantity
    codes[row, line] = np.where(removed, codes[row, sizes - 1], changed)
    return _Orders(
        orders.hour,
        orders.second,
        orders.restaurant,
        orders.customer,
        np.concatenate([orders.codes, codes]),
        np.concatenate([orders.sizes, sizes - removed]),
    )


def _afterwards(draws: Floats) -> Ints:
    """Return delays spread over two days after the order, half of them within the first 45 minutes."""
    return (60 + draws**6 * (_LAST_CHANGE - 60)).astype(np.int64)


def _draw_events(settings: Settings, orders: _Orders, corrected: npt.NDArray[np.bool_], draw: Draw) -> _Events:
    count = len(orders.second)
    own = np.arange(count)
    cancelled = draw(count) < settings.cancellation_rate
    delivered = (draw(count) < settings.delivered_rate) & ~cancelled
    ended = cancelled | delivered
    end_after = np.where(cancelled, _afterwards(draw(count)), (1200 + 1800 * draw(count)).astype(np.int64))
    change_after = _afterwards(draw(count))
    # A cancellation is final: changes come before it.
    change_after = np.where(cancelled, np.minimum(change_after, end_after - 1), change_after)
    before_end = corrected & (change_after < end_after)
    new_basket = np.where(corrected, count + np.cumsum(corrected) - 1, own)
    changes, ends = np.flatnonzero(corrected), np.flatnonzero(ended)
    order = np.concatenate([own, changes, ends])
    after = np.concatenate([np.zeros(count, np.int64), change_after[changes], end_after[ends]])
    arrived = orders.hour * _HOUR + orders.second[order] + after + _delays(settings, count, after, draw)
    happened = _Events(
        order,
        np.concatenate([np.ones(count, np.int64), 2 + (ended & ~before_end)[changes], 2 + before_end[ends]]),
        np.concatenate(
            [
                np.full(count, _PLACED),
                np.full(len(changes), _UPDATED),
                np.where(cancelled, _CANCELLED, _DELIVERED)[ends],
            ]
        ),
        np.concatenate([own, new_basket[changes], np.where(before_end, new_basket, own)[ends]]),
        arrived,
        np.where(draw(len(order)) < settings.broken_rate, draw(len(order)), -1.0),
    )
    return _with_repeats(settings, happened, draw)


def _delays(settings: Settings, orders: int, after: Ints, draw: Draw) -> Ints:
    """Return the seconds until arrival: 1 to 90, up to three days if late, negative if future-dated."""
    late = draw(len(after)) < settings.late_rate
    long = _LATE_FROM + draw(len(after)) * (_LATEST - _LATE_FROM - after)
    delay = np.where(late, long, 1 + draw(len(after)) * 89).astype(np.int64)
    ahead = (draw(orders) < settings.future_rate) & ~late[:orders]
    delay[:orders] = np.where(ahead, -1 - (draw(orders) * (_FUTURE - 1)).astype(np.int64), delay[:orders])
    return delay


def _with_repeats(settings: Settings, happened: _Events, draw: Draw) -> _Events:
    """Repeat some events: half of them at once, the others within an hour."""
    count = len(happened.order)
    again = np.flatnonzero(draw(count) < settings.repeat_rate)
    pause = (np.maximum(0.0, draw(len(again)) * 2 - 1) * _REPEAT_WITHIN).astype(np.int64)
    both = happened.rows(np.concatenate([np.arange(count), again]))
    both.arrived[count:] += pause
    return both


def _lines(world: _World, orders: _Orders, happened: _Events) -> list[str]:
    """Return events as JSON, formatted by hand because a long history spends most of its time here."""
    date_and_hour = from_minute(orders.hour * 60).strftime("%Y-%m-%dT%H:")
    order = happened.order
    items, ids = world.items, world.restaurant_ids
    lines = [
        f'{{"event_id":"e{number:012d}-{version}","order_id":"o{number:012d}","version":{version},'
        f'"restaurant_id":"{ids[restaurant]}","customer_id":"c{customer:06d}",'
        f'"ordered_at":"{date_and_hour}{_MINUTE_AND_SECOND[second]}","status":"{STATUSES[status]}",'
        f'"items":[{",".join([items[code] for code in codes[:size]])}]}}\n'
        for number, version, restaurant, customer, second, status, codes, size in zip(
            (orders.hour * 1_000_000 + order).tolist(),
            happened.version.tolist(),
            orders.restaurant[order].tolist(),
            orders.customer[order].tolist(),
            orders.second[order].tolist(),
            happened.status.tolist(),
            orders.codes[happened.basket].tolist(),
            orders.sizes[happened.basket].tolist(),
            strict=True,
        )
    ]
    for row in np.flatnonzero(happened.breakage >= 0).tolist():
        lines[row] = broken(lines[row].rstrip("\n"), float(happened.breakage[row])) + "\n"
    return lines
