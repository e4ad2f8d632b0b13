"""Break each model of the reference project on purpose: a unit test of the model must fail, and not by an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import pytest

from sqlrun.parse import parse
from sqlrun.parse.parse import Query
from sqlrun.project import Project
from sqlrun.render import render
from sqlrun.unit_tests.run import run as unit_tests
from sqlrun.unit_tests.run.results import TestResult
from tests.support import projects

pytestmark = [pytest.mark.slow, pytest.mark.long]

FEWEST = 3  # minimum number of ways in which each model is broken


@dataclass(frozen=True)
class Mistake:
    """A mistake: `old` occurs once in a model's SQL or in the named macro, `new` is what a tired analyst writes."""

    model: str
    old: str
    new: str
    what: str
    macro: str = ""

    def __str__(self) -> str:
        return f"{self.model}: {self.what}"


MISTAKES = (
    Mistake("stg_order_events", "size(items)", "coalesce(nullif(size(items), 0), 1)", "an empty order has a line"),
    Mistake("stg_order_events", "cast(0 as decimal(18, 2))", "cast(1 as decimal(18, 2))", "totals begin at 1"),
    Mistake("stg_order_events", "item.quantity * item.unit_price", "item.unit_price", "totals forget quantities"),
    Mistake("stg_order_events", "total + item", "item", "the last line is the total"),
    Mistake("stg_order_events", "cast(ordered_at as date)", "cast(ordered_at + interval 2 hours as date)", "local days"),
    Mistake("stg_order_events", "version as order_version", "1 as order_version", "each version is the first"),
    Mistake("stg_order_events", "select\n    event_id", "select distinct\n    event_id", "repeats don't land"),
    Mistake("stg_order_events", "    restaurant_id,\n    customer_id", "    customer_id as restaurant_id,\n    restaurant_id as customer_id", "guests cook"),
    Mistake("stg_orders", "order_version desc", "order_version", "the lowest version counts"),
    Mistake("stg_orders", "order_version desc", "order_version % 10 desc", "versions compare by their last digit"),
    Mistake("stg_orders", "order by order_version desc, event_id desc", "order by event_id desc", "event ids decide"),
    Mistake("stg_orders", "event_id desc\n", "event_id\n", "of two equal versions the first id wins"),
    Mistake("stg_orders", "order by order_version desc", "order by ordered_at desc, order_version desc", "times decide"),
    Mistake("stg_orders", ") = 1", ") <= 2", "two versions of an order stay"),
    Mistake("stg_orders", "from events\n", "from events where status != 'cancelled'\n", "a cancelled order comes back"),
    Mistake("stg_orders", "status = 'cancelled' as", "status = 'delivered' as", "delivered orders are cancelled"),
    Mistake("stg_orders", "partition by order_id", "partition by order_id, event_id", "each event is an order"),
    Mistake("stg_orders", "partition by order_id", "partition by restaurant_id", "a restaurant has one order"),
    Mistake("stg_order_lines", "    where not is_cancelled\n", "", "cancelled orders have lines"),
    Mistake("stg_order_lines", "line.quantity * line.unit_price", "line.unit_price", "line totals forget quantities"),
    Mistake("stg_order_lines", "line_number,\n    line.quantity", "line_number + 1 as line_number,\n    line.quantity", "lines count from 1"),
    Mistake("stg_order_lines", "lateral view posexplode", "lateral view outer posexplode", "empty orders have a line"),
    Mistake("stg_order_lines", "    {{ five_minute_slot('orders.ordered_at') }} as", "    date_trunc('minute', orders.ordered_at) as", "slots of a minute"),
    Mistake("stg_order_lines", "+ 299999999", "+ 300000000", "a slot takes in its start", "five_minute_slot"),
    Mistake("stg_order_lines", "+ 299999999", "+ 299000000", "slots end a second late", "five_minute_slot"),
    Mistake("stg_order_lines", " + 299999999", "", "slots are named by their start", "five_minute_slot"),
    Mistake("stg_order_lines", "cast({{ five_minute_slot('orders.ordered_at') }} as date)", "cast(orders.ordered_at as date)", "the day is the order's, not the slot's"),
    Mistake("fct_restaurant_slots", "    where not is_cancelled\n", "", "cancelled orders count"),
    Mistake("fct_restaurant_slots", "    where not", "    lateral view explode(sequence(1, n_lines)) lines as line\n    where not", "lines counted as orders"),
    Mistake("fct_restaurant_slots", "from orders_in_slots", "from orders_in_slots where order_total > 1", "small orders left out"),
    Mistake("fct_restaurant_slots", "sum(order_total)", "sum(distinct order_total)", "equal totals added once"),
    Mistake("fct_restaurant_slots", "sum(order_total)", "max(order_total)", "the dearest order for all"),
    Mistake("fct_restaurant_slots", "cast({{ five_minute_slot('ordered_at') }} as date)", "cast(ordered_at as date)", "the day is the order's, not the slot's"),
    Mistake("fct_restaurant_slots", "+ 299999999", "+ 300000000", "a slot takes in its start", "five_minute_slot"),
    Mistake("fct_restaurant_slots", " + 299999999", "", "slots are named by their start", "five_minute_slot"),
    Mistake("fct_restaurant_slots", "group by slot_date, slot_at, restaurant_id", "group by slot_date, slot_at, restaurant_id, order_total", "one row a total"),
    Mistake("fct_restaurant_dish_slots", "sum(quantity)", "count(*)", "lines counted as dishes"),
    Mistake("fct_restaurant_dish_slots", "count(*)", "count(distinct order_id)", "orders counted as lines"),
    Mistake("fct_restaurant_dish_slots", "sum(line_total)", "max(line_total)", "the dearest line for all"),
    Mistake("fct_restaurant_dish_slots", "sum(line_total)", "sum(unit_price)", "prices instead of totals"),
    Mistake("fct_restaurant_dish_slots", "sum(line_total)", "sum(distinct line_total)", "equal lines added once"),
    Mistake("fct_restaurant_dish_slots", "    slot_at\nfrom", "    cast(slot_date as timestamp) as slot_at\nfrom", "one slot a day"),
    Mistake("fct_restaurant_dish_slots", "group by slot_date, slot_at, restaurant_id, dish_id", "group by slot_date, slot_at, restaurant_id, dish_id, order_id", "one row an order"),
    Mistake("fct_restaurant_hours", "cast({{ hour_of('slot_at - interval 5 minutes') }} as date)", "cast(slot_at as date)", "midnight's slot is the next day's"),
    Mistake("fct_restaurant_hours", "    {{ hour_of('slot_at - interval 5 minutes') }} as hour_at", "    {{ hour_of('slot_at') }} as hour_at", "an hour's last slot is the next hour's"),
    Mistake("fct_restaurant_hours", "    {{ hour_of('slot_at - interval 5 minutes') }} as hour_at", "    {{ hour_of('slot_at - interval 10 minutes') }} as hour_at", "an hour's first slot is the hour's before"),
    Mistake("fct_restaurant_hours", "sum(n_orders)", "count(*)", "slots counted as orders"),
    Mistake("fct_restaurant_hours", "sum(total_sales)", "max(total_sales)", "the best slot for the hour"),
    Mistake("fct_restaurant_hours", "sum(total_sales)", "sum(distinct total_sales)", "equal slots added once"),
    Mistake("fct_restaurant_hours", "date_trunc('hour',", "date_trunc('day',", "a day is an hour", "hour_of"),
    Mistake("restaurant_customers", "    where not is_cancelled\n", "", "who cancelled counts"),
    Mistake("restaurant_customers", "count(distinct customer_id)", "count(customer_id)", "orders counted as guests"),
    Mistake("restaurant_customers", "'ordered_at'", "\"date_trunc('hour', ordered_at)\"", "windows move by the hour"),
    Mistake("restaurant_customers", "var('window_hours')", "[1, 24]", "no window of a week"),
    Mistake("restaurant_customers", "{{ time }} > current", "{{ time }} >= current", "windows take in their start", "rolling_windows"),
    Mistake("restaurant_customers", "and {{ time }} <= current_timestamp()", "and {{ time }} < current_timestamp()", "windows leave out their end", "rolling_windows"),
    Mistake("restaurant_customers", "and {{ time }} <= current_timestamp()", "", "the future counts", "rolling_windows"),
    Mistake("restaurant_windows", "left join restaurants on", "inner join restaurants on", "restaurants without a name are gone"),
    Mistake("restaurant_windows", "left join dishes on", "inner join dishes on", "dishes without a name are gone"),
    Mistake("restaurant_windows", "left join dish_lists\n", "inner join dish_lists\n", "orders without dishes are gone"),
    Mistake("restaurant_windows", "on restaurant_totals.window_hours = dish_lists.window_hours\n    and ", "on ", "lists of all windows for each"),
    Mistake("restaurant_windows", "on best_dishes.dish_id = dishes.dish_id", "on best_dishes.dish_id >= dishes.dish_id", "a dish has names of others"),
    Mistake("restaurant_windows", "quantity desc, dish_id", "quantity desc, dish_id desc", "ties go to the higher id"),
    Mistake("restaurant_windows", "quantity desc, dish_id", "quantity, dish_id", "the dishes ordered least"),
    Mistake("restaurant_windows", "partition by window_hours, restaurant_id\n                order", "partition by restaurant_id\n                order", "three dishes over all windows"),
    Mistake("restaurant_windows", "partition by window_hours, restaurant_id\n                order", "partition by window_hours\n                order", "three dishes over all restaurants"),
    Mistake("restaurant_windows", "dish_rank <= 3", "dish_rank < 3", "two dishes"),
    Mistake("restaurant_windows", "dish_rank <= 3", "dish_rank <= 4", "four dishes"),
    Mistake("restaurant_windows", "sum(n_orders)", "count(*)", "slots counted as orders"),
    Mistake("restaurant_windows", "'dish_slots', 'slot_at', ['restaurant_id', 'dish_id', 'quantity']", "'dish_slots', 'slot_at', ['restaurant_id', 'dish_id', 'n_lines as quantity']", "lines counted as dishes"),
    Mistake("restaurant_windows", "'restaurant_slots', 'slot_at', ['restaurant_id', 'n_orders', 'total_sales']", "'restaurant_slots', 'cast(slot_date as timestamp)', ['restaurant_id', 'n_orders', 'total_sales']", "windows of whole days"),
    Mistake("restaurant_windows", "coalesce(dish_lists.top_dishes, array())", "dish_lists.top_dishes", "no list instead of an empty one"),
    Mistake("restaurant_windows", "var('window_hours')\n    ) }}\n),\n\nrestaurant_totals", "[1, 24]\n    ) }}\n),\n\nrestaurant_totals", "no window of a week"),
    Mistake("restaurant_windows", "{{ time }} > current", "{{ time }} >= current", "windows take in their start", "rolling_windows"),
    Mistake("restaurant_windows", "and {{ time }} <= current_timestamp()", "and {{ time }} < current_timestamp()", "windows leave out their end", "rolling_windows"),
    Mistake("restaurant_windows", "and {{ time }} <= current_timestamp()", "", "the future counts", "rolling_windows"),
)  # fmt: skip


@cache
def right() -> tuple[Project, Mapping[str, Query]]:
    """Return the project as it is, read and parsed once."""
    project = projects.project()
    return project, {query.name: query for query in parse.project(render.project(project), project)}


def edited(text: str, mistake: Mistake) -> str:
    """Return a text with the mistake; a macro's comment repeats its code, so the last occurrence is replaced."""
    places = text.count(mistake.old)
    assert places == 1 or (mistake.macro and places), f"{mistake}: stands {places} times in it"
    before, _, after = text.rpartition(mistake.old)
    return before + mistake.new + after


def broken(mistake: Mistake) -> tuple[Project, Query]:
    """Return the project with the mistake, and the query of the model."""
    project, _ = right()
    model = next(model for model in project.models if model.name == mistake.model)
    if mistake.macro:
        macros = tuple(
            replace(m, text=edited(m.text, mistake)) if m.name == mistake.macro else m for m in project.macros
        )
        project = replace(project, macros=macros)
    else:
        model = replace(model, sql=edited(model.sql, mistake))
    project = replace(project, models=tuple(model if m.name == model.name else m for m in project.models))
    rendered = render.overridden(project, {}, {})(model)
    return project, parse.query(rendered, parse.schema_of(project), project.functions)


def results(project: Project, query: Query) -> Iterator[TestResult]:
    """Yield the results of the model's unit tests, up to the first failure."""
    tests = [(test, query) for test in query.rendered.model.unit_tests]
    for result in unit_tests.run(project, {**right()[1], query.name: query}, tests):
        yield result
        if result.status != "pass":
            break


# `make test-fast` makes the first mistake of each model.
FIRST = {mistake.model: mistake for mistake in reversed(MISTAKES)}.values()


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(m, id=str(m), marks=[] if m in FIRST else [pytest.mark.slow]) for m in MISTAKES],
)
def test_a_mistake_in_a_model_fails_one_of_its_unit_tests(mistake: Mistake) -> None:
    """It fails by its rows; a query that can't run would prove nothing."""
    *_, last = results(*broken(mistake))

    assert last.status == "fail", f"no unit test of {mistake.model} sees that {mistake.what} {last.message}"


def test_each_model_is_broken_in_three_ways() -> None:
    project, queries = right()
    ways = Counter(mistake.model for mistake in MISTAKES)

    assert ways.keys() == queries.keys()
    assert min(ways.values()) >= FEWEST
    assert len({str(mistake) for mistake in MISTAKES}) == len(MISTAKES)
    assert {m.macro for m in MISTAKES} - {""} == {macro.name for macro in project.macros}
