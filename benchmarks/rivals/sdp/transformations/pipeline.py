"""A streaming table of events, and materialized views over it. Spark keeps no view up to date by its changes."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
AS_OF = spark.conf.get("spark.bench.as_of")
FOLDER = spark.conf.get("spark.bench.folder")
LINE = """event_id string, order_id string, version string, restaurant_id string, customer_id string,
    ordered_at string, status string, items array<struct<dish_id: string, quantity: string, unit_price: string>>,
    _corrupt string"""
JSON = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false')"


@dp.table
def order_events() -> DataFrame:
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 100000).load(f"{FOLDER}/data/orders")
    typed = lines.selectExpr(f"from_json(value, '{LINE}', {JSON}) as o").where("o is not null and o._corrupt is null")
    typed = typed.selectExpr(
        "o.event_id",
        "o.order_id",
        "try_cast(o.version as int) as order_version",
        "o.restaurant_id",
        "o.customer_id",
        "o.status",
        """transform(o.items, i -> struct(i.dish_id as dish_id, try_cast(i.quantity as int) as quantity,
            try_cast(i.unit_price as decimal(10, 2)) as unit_price)) as items""",
        "try_cast(o.ordered_at as timestamp) as ordered_at",
    )
    good = typed.where(
        """event_id is not null and length(order_id) > 0 and order_version is not null and restaurant_id is not null
        and customer_id is not null and status in ('placed', 'updated', 'cancelled', 'delivered') and size(items) > 0
        and ordered_at between timestamp '2020-01-01' and timestamp '2050-01-01'
        and forall(items, i -> coalesce(i.dish_id is not null and i.quantity > 0 and i.unit_price >= 0, false))"""
    )
    return good.selectExpr(
        "*",
        "timestamp_seconds((unix_micros(ordered_at) + 299999999) div 300000000 * 300) as slot_at",
        """aggregate(items, cast(0 as decimal(18, 2)),
            (t, i) -> cast(t + i.quantity * i.unit_price as decimal(18, 2))) as order_total""",
    )


@dp.materialized_view
def orders() -> DataFrame:
    return spark.sql("""
        select restaurant_id, slot_at, order_total, items
        from (
            select *, row_number() over (partition by order_id order by order_version desc, event_id desc) as place
            from order_events
        )
        where place = 1 and status <> 'cancelled'
    """)


@dp.materialized_view
def restaurant_hours() -> DataFrame:
    return spark.sql("""
        select
            restaurant_id,
            count(*) as n_orders,
            cast(sum(order_total) as decimal(18, 2)) as total_sales,
            date_trunc('hour', slot_at - interval 5 minutes) as hour_at
        from orders
        group by restaurant_id, date_trunc('hour', slot_at - interval 5 minutes)
    """)


@dp.materialized_view
def restaurant_windows() -> DataFrame:
    return spark.sql(f"""
        with recent as (
            select
                restaurant_id,
                order_total,
                items,
                filter(array(1, 24, 168), h -> slot_at > timestamp '{AS_OF}' - make_interval(0, 0, 0, 0, h)) as windows
            from orders
            where slot_at > timestamp '{AS_OF}' - interval 168 hours and slot_at <= timestamp '{AS_OF}'
        ),
        totals as (
            select window_hours, restaurant_id, count(*) as n_orders,
                cast(sum(order_total) as decimal(18, 2)) as total_sales
            from recent
            lateral view explode(windows) as window_hours
            group by window_hours, restaurant_id
        ),
        lines as (
            select windows, restaurant_id, item.dish_id, sum(item.quantity) as quantity
            from recent
            lateral view explode(items) as item
            group by windows, restaurant_id, item.dish_id
        ),
        dish_totals as (
            select window_hours, restaurant_id, dish_id, sum(quantity) as quantity
            from lines
            lateral view explode(windows) as window_hours
            group by window_hours, restaurant_id, dish_id
        ),
        ranked as (
            select *, row_number() over (
                partition by window_hours, restaurant_id order by quantity desc, dish_id
            ) as dish_rank
            from dish_totals
        ),
        lists as (
            select window_hours, restaurant_id,
                array_sort(collect_list(struct(dish_rank, dish_id, dish_name, quantity))) as top_dishes
            from ranked
            left join dishes using (dish_id)
            where dish_rank <= 3
            group by window_hours, restaurant_id
        )
        select window_hours, restaurant_id, restaurant_name, n_orders, total_sales, top_dishes
        from totals
        left join lists using (window_hours, restaurant_id)
        left join restaurants using (restaurant_id)
    """)


@dp.materialized_view
def restaurants() -> DataFrame:
    return spark.read.option("header", True).csv(f"{FOLDER}/seeds/restaurants.csv")


@dp.materialized_view
def dishes() -> DataFrame:
    return spark.read.option("header", True).csv(f"{FOLDER}/seeds/dishes.csv")
