"""The facts and marts of an area of a described project. Pure."""

from __future__ import annotations

import random

from benchmarks.described import A_DAY, COUNT, ID, MONEY, Column, Described, ctes

REGIONS = ("north", "east", "south", "west")
MEASURES = {
    "n_orders": ("count(*)", COUNT, "How many orders there are."),
    "total_sales": ("cast(sum({t}order_total) as decimal(18, 2))", MONEY, "What guests pay for them, added up."),
    "total_fees": ("cast(sum({t}fee) as decimal(18, 2))", MONEY, "What the platform keeps of it."),
    "total_tips": ("cast(sum({t}tip) as decimal(18, 2))", MONEY, "What guests give on top."),
    "n_late": ("count_if({t}is_late)", COUNT, "How many came later than was promised."),
    "n_large": ("count_if({t}order_total > {{{{ var('large_order') }}}})", COUNT, "How many cost more than most do."),
    "n_new_guests": ("count_if({t}is_first)", COUNT, "How many were the first of their guest."),
}

KEYS = {
    "slot_hour": Column("slot_hour", "timestamp", "The hour of the orders (UTC)."),
    "ordered_date": Column("ordered_date", A_DAY, "The day of the orders (UTC)."),
    "region": Column("region", ID, "Where the guests live."),
    "plan": Column("plan", ID, "What the guests pay for."),
    "customer_id": Column("customer_id", ID, "The guest."),
    "restaurant_id": Column("restaurant_id", ID, "The restaurant."),
}


def measured(chance: random.Random) -> list[str]:
    return ["n_orders", "total_sales", *chance.sample(list(MEASURES)[2:], chance.randint(1, 4))]


def fact(area: str, name: str, read: Described, keys: tuple[str, ...], chance: random.Random) -> Described:
    chosen = measured(chance)
    first, rest = keys[0], keys[1:]
    listed = ",\n".join(f"    {MEASURES[m][0].format(t='')} as {m}" for m in chosen)
    body = "".join(f"    {key},\n" for key in (*rest, first)) + listed
    sql = ctes({"orders": read.name})
    sql += f"\n\nselect\n{body}\nfrom orders\ngroup by {', '.join(keys)}\n"
    columns = (
        *(KEYS[key] for key in (*rest, first)),
        *(Column(m, MEASURES[m][1], MEASURES[m][2]) for m in chosen),
    )
    checks = (("above", "n_orders", 1), ("above", "total_sales", 0)) if chance.random() < 0.7 else ()
    text = f"How many orders {area} has and for how much, by {' and '.join(keys)}."
    return Described(
        f"fct_{area}__{name}", f"facts/{area}", sql, text, keys, columns, checks, tags=("daily",) * (len(chosen) > 4)
    )


def dishes(area: str) -> Described:
    sql = ctes({"order_lines": f"int_{area}__order_lines"})
    sql += """

select
    ordered_date,
    dish_id,
    cast(sum(quantity) as bigint) as quantity,
    {{ money('sum(line_total)') }} as total_sales,
    count(*) as n_lines
from order_lines
where dish_id is not null
group by ordered_date, dish_id
"""
    columns = (
        KEYS["ordered_date"],
        Column("dish_id", ID, "The dish.", filled=False),
        Column("quantity", COUNT, "How many were ordered.", filled=False),
        Column("total_sales", MONEY, "What guests pay for them.", filled=False),
        Column("n_lines", COUNT, "How many lines of orders name it."),
    )
    text = f"What dishes {area} sells by day."
    return Described(f"fct_{area}__dish_days", f"facts/{area}", sql, text, ("ordered_date", "dish_id"), columns)


def rolled_up(area: str, hours: Described, chance: random.Random) -> Described:
    measures = [c for c in hours.columns if c.name not in KEYS]
    listed = ",\n".join(f"    cast(sum({c.name}) as {c.type.replace(',', ', ')}) as {c.name}" for c in measures)
    sql = ctes({"hours": hours.name})
    sql += f"\n\nselect\n    {{{{ day_of('slot_hour') }}}} as ordered_date,\n    region,\n{listed}\nfrom hours\n"
    sql += "group by {{ day_of('slot_hour') }}, region\n"
    columns = (KEYS["ordered_date"], KEYS["region"], *(Column(c.name, c.type, c.text, False) for c in measures))
    checks = (("among", "region", [*REGIONS, "unknown"]),) if chance.random() < 0.5 else ()
    text = f"The orders of {area} by day and region, from those by hour."
    return Described(
        f"fct_{area}__days", f"facts/{area}", sql, text, ("ordered_date", "region"), columns, checks, tags=("daily",)
    )


def windows(area: str, hours: Described, chance: random.Random) -> Described:
    width = chance.choice((6, 12, 24, 48, 168))
    sql = ctes({"hours": hours.name})
    sql += f"""

select
    region,
    cast(sum(n_orders) as bigint) as n_orders,
    {{{{ money('sum(total_sales)') }}}} as total_sales
from hours
where slot_hour > current_timestamp() - interval {width} hours
    and slot_hour <= current_timestamp()
group by region
"""
    columns = (
        KEYS["region"],
        Column("n_orders", COUNT, f"Orders of the last {width} hours.", False),
        Column("total_sales", MONEY, "What guests pay for them.", False),
    )
    text = f"The last {width} hours of {area} by region."
    return Described(f"mart_{area}__now", f"marts/{area}", sql, text, ("region",), columns)


def ranked(area: str, chance: random.Random) -> Described:
    most = chance.choice((3, 5, 10))
    sql = ctes({"dish_days": f"fct_{area}__dish_days"})
    sql += f"""

select
    ordered_date,
    dish_id,
    quantity,
    total_sales,
    cast(
        row_number() over (
            partition by ordered_date
            order by quantity desc, dish_id
        ) as int
    ) as dish_rank
from dish_days
qualify dish_rank <= {most}
"""
    columns = (
        KEYS["ordered_date"],
        Column("dish_id", ID, "The dish.", False),
        Column("quantity", COUNT, "How many were ordered.", False),
        Column("total_sales", MONEY, "What guests pay for them.", False),
        Column("dish_rank", "int", f"Its place on that day, from 1 to {most}."),
    )
    text = f"The {most} best dishes of each day in {area}."
    return Described(f"mart_{area}__best_dishes", f"marts/{area}", sql, text, ("ordered_date", "dish_rank"), columns)


def shared(area: str, chance: random.Random) -> Described:
    rate = chance.randint(1, 19)
    sql = ctes({"days": f"fct_{area}__days", "regions": "regions"})
    sql += f"""

select
    days.ordered_date,
    days.region,
    regions.country,
    days.n_orders,
    days.total_sales,
    {{{{ money('days.total_sales * 0.{rate:02d}') }}}} as tax
from days
inner join regions on days.region = regions.region
where days.n_orders > 0
"""
    columns = (
        KEYS["ordered_date"],
        KEYS["region"],
        Column("country", ID, "The region's country."),
        Column("n_orders", COUNT, "How many orders there are.", False),
        Column("total_sales", MONEY, "What guests pay for them.", False),
        Column("tax", MONEY, f"{rate} parts in a hundred of it.", False),
    )
    grain = ("ordered_date", "region")
    return Described(f"mart_{area}__days", f"marts/{area}", sql, f"Days of {area} with tax.", grain, columns)


def compared(area: str, before: str, chance: random.Random) -> Described:
    sql = ctes({"ours": f"fct_{area}__region_plans", "theirs": f"fct_{before}__region_plans"})
    kind = chance.choice(("left", "inner"))
    sql += f"""

select
    ours.region,
    ours.plan,
    ours.n_orders,
    theirs.n_orders as n_orders_before,
    {{{{ money('ours.total_sales - theirs.total_sales') }}}} as difference
from ours
{kind} join theirs
    on ours.region = theirs.region
    and ours.plan = theirs.plan
"""
    columns = (
        KEYS["region"],
        KEYS["plan"],
        Column("n_orders", COUNT, "How many orders there are."),
        Column("n_orders_before", COUNT, "How many the area before has.", False),
        Column("difference", MONEY, "How much more this area sells.", False),
    )
    text = f"The area {area} beside {before}."
    return Described(f"mart_{area}__compared", f"marts/{area}", sql, text, ("region", "plan"), columns)


def last(area: str, chance: random.Random) -> Described:
    sql = ctes({"days": f"mart_{area}__days", "dishes": f"mart_{area}__best_dishes"})
    sql += f"""

select
    days.ordered_date,
    days.region,
    days.country,
    days.total_sales,
    dishes.dish_id as best_dish,
    dishes.quantity as best_quantity
from days
left join dishes
    on days.ordered_date = dishes.ordered_date
    and dishes.dish_rank = {chance.randint(1, 3)}
"""
    columns = (
        KEYS["ordered_date"],
        KEYS["region"],
        Column("country", ID, "The region's country."),
        Column("total_sales", MONEY, "What guests pay.", False),
        Column("best_dish", ID, "A dish that sold best.", False),
        Column("best_quantity", COUNT, "How many were ordered.", False),
    )
    text = f"The days of {area} with a dish that sold best."
    return Described(
        f"mart_{area}__day_cards", f"marts/{area}", sql, text, ("ordered_date", "region"), columns, tags=("cards",)
    )


def report(area: str, number: int, chance: random.Random) -> Described:
    least = chance.randint(1, 500)
    sql = ctes({"cards": f"mart_{area}__day_cards", "days": f"fct_{area}__days"})
    sql += f"""

select
    cards.ordered_date,
    cards.region,
    cards.best_dish,
    days.n_orders,
    {{{{ money('days.total_sales') }}}} as total_sales
from cards
inner join days
    on cards.ordered_date = days.ordered_date
    and cards.region = days.region
where days.n_orders >= {least}
    and cards.region <> '{chance.choice(REGIONS)}'
"""
    columns = (
        KEYS["ordered_date"],
        KEYS["region"],
        Column("best_dish", ID, "A dish that sold best.", False),
        Column("n_orders", COUNT, "How many orders there are.", False),
        Column("total_sales", MONEY, "What guests pay.", False),
    )
    text = f"Report {number} of {area}: days with {least} orders or more."
    return Described(f"mart_{area}__report_{number}", f"marts/{area}", sql, text, ("ordered_date", "region"), columns)
