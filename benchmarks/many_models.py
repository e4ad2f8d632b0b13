"""A project of any number of models, described once: areas of staging, joins, facts and marts. Pure.

An area has 25 models over two sources, ten deep from first to last; a few read the previous area. `seed` selects
measures, filters and columns of each model, so that areas differ in more than their names.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.described import A_DAY, A_PRICE, ID, MONEY, Column, Described, Source, World, ctes
from benchmarks.many_marts import compared, dishes, fact, last, ranked, report, rolled_up, shared, windows

WORDS = ("retail", "wholesale", "online", "market", "partner", "office", "school", "travel", "event", "depot")
ITEMS = "array<struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>>"
ORDER_COLUMNS = (
    Column("order_id", ID, "The order."),
    Column("customer_id", ID, "The guest who ordered."),
    Column("restaurant_id", ID, "The restaurant that cooks."),
    Column("status", ID, "placed, updated, cancelled or delivered."),
    Column("order_total", MONEY, "What the guest pays."),
    Column("fee", MONEY, "What the platform keeps."),
    Column("tip", MONEY, "What the guest gives on top."),
    Column("is_late", "boolean", "Whether it came later than was promised."),
    Column("is_first", "boolean", "Whether it is the guest's first order."),
    Column("items", ITEMS, "The dishes, with quantity and price."),
    Column("ordered_at", "timestamp", "When the guest ordered (UTC)."),
)
VERSION = Column("version", "int", "Which state of the order this is, from 1; the highest one counts.")
EVENT = Column("event_id", ID, "The event; a line that is sent twice has the same one twice.")
CUSTOMER_COLUMNS = (
    Column("customer_id", ID, "The guest."),
    Column("region", ID, "Where the guest lives: north, east, south or west."),
    Column("plan", ID, "What the guest pays for: free, plus or pro."),
    Column("birth_year", "int", "The year of birth, where it is known.", filled=False),
    Column("signed_up_at", "timestamp", "When the guest signed up (UTC)."),
)


def describe(models: int, seed: int = 1) -> World:
    """Describe the first `models` models; the last area may be incomplete."""
    world = World()
    before = ""
    for number in range((models + 24) // 25):
        area = f"{WORDS[number % len(WORDS)]}_{number:03d}"
        chance = random.Random(f"{seed} {area}")
        world.sources += sources(area)
        world.models += area_models(area, before, chance)
        before = area
    world.models = world.models[:models]
    return world


def sources(area: str) -> list[Source]:
    """Return the two streams of an area."""
    return [
        Source(area, "orders", f"What happened to the orders of {area}.", (EVENT, VERSION, *ORDER_COLUMNS)),
        Source(area, "customers", f"What guests of {area} said of themselves.", (EVENT, VERSION, *CUSTOMER_COLUMNS)),
    ]


def area_models(area: str, before: str, chance: random.Random) -> Iterator[Described]:
    """Yield the 25 models of an area."""
    yield landing(area, "order", ORDER_COLUMNS)
    yield landing(area, "customer", CUSTOMER_COLUMNS)
    yield newest(area, "order", ORDER_COLUMNS)
    yield newest(area, "customer", CUSTOMER_COLUMNS)
    valid = filtered(area, chance)
    yield valid
    yield lines(area)
    joined = with_customers(area, valid, chance)
    yield joined
    described = with_regions(area, joined, chance)
    yield described
    grouped = slots(area, described)
    yield grouped
    hours = fact(area, "hours", grouped, ("slot_hour", "region"), chance)
    yield hours
    for name, keys in FACTS.items():
        yield fact(area, name, grouped, keys, chance)
    yield dishes(area)
    days = rolled_up(area, hours, chance)
    yield days
    yield windows(area, hours, chance)
    yield ranked(area, chance)
    shares = shared(area, chance)
    yield shares
    yield compared(area, before or area, chance)
    yield last(area, chance)
    for number in range(1, 4):
        yield report(area, number, chance)


FACTS = {
    "guest_days": ("ordered_date", "customer_id"),
    "restaurant_days": ("ordered_date", "restaurant_id"),
    "plan_days": ("ordered_date", "plan"),
    "region_plans": ("region", "plan"),
    "restaurant_hours": ("slot_hour", "restaurant_id"),
}


def landing(area: str, entity: str, columns: tuple[Column, ...]) -> Described:
    names = "".join(f"    {c.name},\n" for c in (EVENT, VERSION, *columns[:-1])) + f"    {columns[-1].name}"
    sql = f"select\n{names}\nfrom {{{{ source('{area}', '{entity}s') }}}}\n"
    name = f"stg_{area}__{entity}_events"
    checks = (("above", "version", 1), ("shape", f"{entity}_id", "^[a-z][0-9]+$"))
    text = f"Every event of each {entity} of {area} as it came, repeats included."
    return Described(
        name, f"staging/{area}", sql, text, ("event_id",), (EVENT, VERSION, *columns), checks, repeats=True
    )


def newest(area: str, entity: str, columns: tuple[Column, ...]) -> Described:
    names = ",\n".join(f"    {c.name}" for c in (*columns[:-1], EVENT, columns[-1]))
    sql = ctes({"events": f"stg_{area}__{entity}_events"})
    sql += f"\n\nselect\n{names}\nfrom events\n{{{{ newest_of('{entity}_id', 'version', 'event_id') }}}}\n"
    text = f"Each {entity} of {area} as it is now."
    shown = (*columns[:-1], EVENT, columns[-1])
    checks = (("among", "status", ["placed", "updated", "cancelled", "delivered"]),) if entity == "order" else ()
    return Described(f"stg_{area}__{entity}s", f"staging/{area}", sql, text, (f"{entity}_id",), shown, checks)


def filtered(area: str, chance: random.Random) -> Described:
    condition = chance.choice(("status <> 'cancelled'", "not status in ('cancelled', 'updated')"))
    kept = ",\n".join(f"    {c.name}" for c in ORDER_COLUMNS)
    sql = ctes({"orders": f"stg_{area}__orders"})
    sql += f"\n\nselect\n{kept},\n    {{{{ day_of('ordered_at') }}}} as ordered_date,\n"
    sql += f"    {{{{ hour_of('ordered_at') }}}} as slot_hour\nfrom orders\nwhere {condition}\n"
    if chance.random() < 0.5:
        sql += f"    and order_total >= {chance.randint(1, 5)}\n"
    shown = (
        *ORDER_COLUMNS,
        Column("ordered_date", A_DAY, "The day of the order."),
        Column("slot_hour", "timestamp", "Its hour."),
    )
    text = f"The orders of {area} that count: none that was cancelled, none below what a delivery costs."
    row = {"order_id": "o1", "status": "cancelled", "order_total": 20.0, "ordered_at": "2026-05-04 12:00:00"}
    good = {**row, "status": "delivered"}
    return Described(
        f"int_{area}__orders_valid",
        f"intermediate/{area}",
        sql,
        text,
        ("order_id",),
        shown,
        view=chance.random() < 0.3,
        example=(f"stg_{area}__orders", good, {"order_id": "o1", "ordered_date": "2026-05-04"}),
    )


def lines(area: str) -> Described:
    sql = ctes({"orders": f"int_{area}__orders_valid"})
    sql += """

select
    orders.order_id,
    orders.restaurant_id,
    line.dish_id,
    line_number,
    line.quantity,
    line.unit_price,
    {{ money('line.quantity * line.unit_price') }} as line_total,
    orders.ordered_date
from orders
lateral view posexplode(orders.items) lines as line_number, line
"""
    columns = (
        *(Column(n, ID, t) for n, t in (("order_id", "The order."), ("restaurant_id", "The restaurant."))),
        Column("dish_id", ID, "The dish.", filled=False),
        Column("line_number", "int", "The line's place on the order, from 0."),
        Column("quantity", "int", "How many of the dish.", filled=False),
        Column("unit_price", A_PRICE, "The price of one.", filled=False),
        Column("line_total", MONEY, "Quantity times price.", filled=False),
        Column("ordered_date", A_DAY, "The day of the order."),
    )
    grain = ("order_id", "line_number")
    text = f"The lines of the orders of {area}, one row a dish."
    return Described(f"int_{area}__order_lines", f"intermediate/{area}", sql, text, grain, columns, view=True)


def with_customers(area: str, valid: Described, chance: random.Random) -> Described:
    shown = [c for c in valid.columns if c.name != "items"]
    names = "".join(f"    orders.{c.name},\n" for c in shown)
    sql = ctes({"orders": valid.name, "customers": f"stg_{area}__customers"})
    sql += f"\n\nselect\n{names}    coalesce(customers.region, 'unknown') as region,\n"
    sql += "    coalesce(customers.plan, 'free') as plan,\n"
    sql += "    customers.signed_up_at\nfrom orders\nleft join customers\n"
    sql += "    on orders.customer_id = customers.customer_id\n"
    columns = (
        *shown,
        Column("region", ID, "Where the guest lives; unknown where the guest is."),
        Column("plan", ID, "What the guest pays for."),
        Column("signed_up_at", "timestamp", "When the guest signed up (UTC).", filled=False),
    )
    text = f"The orders of {area} with what is known of their guests."
    checks = (("above", "order_total", 0),) if chance.random() < 0.5 else ()
    return Described(
        f"int_{area}__orders_with_guests", f"intermediate/{area}", sql, text, ("order_id",), columns, checks
    )


def with_regions(area: str, joined: Described, chance: random.Random) -> Described:
    names = "".join(f"    orders.{c.name},\n" for c in joined.columns if c.name not in ("signed_up_at", "tip"))
    bounds = sorted(chance.sample(range(10, 90, 5), 2))
    sql = ctes({"orders": joined.name, "regions": "regions"})
    sql += f"""

select
{names}    {{{{ money('orders.tip') }}}} as tip,
    coalesce(regions.country, 'none') as country,
    case
        when orders.order_total < {bounds[0]} then 'small'
        when orders.order_total < {bounds[1]} then 'middle'
        else 'large'
    end as size_class
from orders
left join regions on orders.region = regions.region
"""
    columns = (
        *(c for c in joined.columns if c.name not in ("signed_up_at", "tip")),
        Column("tip", MONEY, "What the guest gives on top."),
        Column("country", ID, "The region's country; none where it has none."),
        Column("size_class", ID, f"small below {bounds[0]}, middle below {bounds[1]}, else large."),
    )
    checks = (("among", "size_class", ["small", "middle", "large"]),)
    text = f"The orders of {area} with guest, region and size."
    return Described(f"int_{area}__orders_described", f"intermediate/{area}", sql, text, ("order_id",), columns, checks)


def slots(area: str, described: Described) -> Described:
    names = "".join(f"    {c.name},\n" for c in described.columns)
    sql = ctes({"orders": described.name})
    sql += f"\n\nselect\n{names}    {{{{ quarter_of('ordered_at') }}}} as quarter_start\nfrom orders\n"
    columns = (*described.columns, Column("quarter_start", "timestamp", "The start of the order's quarter."))
    text = f"The orders of {area}, ready to be counted."
    return Described(f"int_{area}__orders_ready", f"intermediate/{area}", sql, text, ("order_id",), columns, view=True)
