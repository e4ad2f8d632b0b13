"""The yardstick: an expert's hand-written job for the same tables, with Structured Streaming and Delta's MERGE.

It has one stream over the JSON files with one `foreachBatch`. It is right for late, repeated, corrected, cancelled and
broken lines, and after a crash between two writes; it is tuned for two cores. Unlike sqlrun it assumes that an order's
`ordered_at` never changes, so its day determines its partition. It has no checks, no quarantine, no consistent snapshot
over the tables and no run stats, and every model is spread over four functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import spark_costs
from benchmarks.costs import TickCost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    # Every source of a MERGE is a checkpoint already.
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.ansi.enabled": "false",
    # Adaptive execution turns every exchange into a job, which is too expensive for small batches.
    "spark.sql.adaptive.enabled": "false",
}
LINE = """event_id string, order_id string, version string, restaurant_id string, customer_id string,
    ordered_at string, status string, items array<struct<dish_id: string, quantity: string, unit_price: string>>,
    _corrupt string"""
TABLES = {
    "events": "event_id string, order_id string, order_version int, restaurant_id string, customer_id string, "
    "status string, n_lines int, order_total decimal(18,2), "
    "items array<struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>>, "
    "ordered_date date, ordered_at timestamp",
    "restaurant_slots": "slot_date date, slot_at timestamp, restaurant_id string, n_orders bigint, "
    "total_sales decimal(18,2)",
    "dish_slots": "slot_date date, slot_at timestamp, restaurant_id string, dish_id string, quantity bigint, "
    "sales decimal(18,2), n_lines bigint",
    "restaurant_hours": "hour_date date, hour_at timestamp, restaurant_id string, n_orders bigint, "
    "total_sales decimal(18,2)",
    "restaurant_windows": "window_hours int, restaurant_id string, restaurant_name string, n_orders bigint, "
    "total_sales decimal(18,2), "
    "top_dishes array<struct<dish_rank:int,dish_id:string,dish_name:string,quantity:bigint>>",
}
TABLES["orders"] = TABLES["events"]
PARTITIONS = {
    "orders": "ordered_date",
    "restaurant_slots": "slot_date",
    "dish_slots": "slot_date",
    "restaurant_hours": "hour_date",
}
STATUSES = "('placed', 'updated', 'cancelled', 'delivered')"
STAMP = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?$"
MONEY = "^[+-]?[0-9]{1,8}([.][0-9]{1,2})?$"
# A slot is half-open and named by its end, (slot_at - 5 minutes, slot_at].
SLOT = "timestamp_seconds((unix_micros(ordered_at) + 299999999) div 300000000 * 300)"


@dataclass(frozen=True, slots=True)
class Job:
    """A folder with `data/orders` (arriving files), `seeds` and `tables`, and the session."""

    folder: Path
    spark: SparkSession

    def path(self, table: str) -> str:
        """Return the path of a table."""
        return str(self.folder / "tables" / table)


def start(folder: Path, memory: str = "6g") -> Job:
    """Start Spark and create missing tables."""
    spark = session(memory)
    job = Job(folder, spark)
    for name, columns in TABLES.items():
        if not (folder / "tables" / name / "_delta_log").is_dir():
            partition = f"partitioned by ({PARTITIONS[name]})" if name in PARTITIONS else ""
            spark.sql(f"create table delta.`{job.path(name)}` ({columns}) using delta {partition}")
    for name in ("restaurants", "dishes"):
        seed = spark.read.option("header", True).csv(str(folder / "seeds" / f"{name}.csv"))
        seed.coalesce(1).localCheckpoint().createOrReplaceGlobalTempView(name)
    return job


def session(memory: str) -> SparkSession:
    """Start the session; Delta's jars come from the Ivy cache if they are there."""
    from pyspark.sql import SparkSession

    jars = [
        Path.home() / ".ivy2.5.2" / "jars" / f"io.delta_{name}-4.4.0.jar"
        for name in ("delta-spark_4.1_2.13", "delta-storage")
    ]
    cached = all(jar.is_file() for jar in jars)
    builder = SparkSession.builder.config("spark.driver.memory", memory)
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
    builder = (
        builder.config("spark.jars", ",".join(map(str, jars)))
        if cached
        else builder.config("spark.jars.packages", DELTA)
    )
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def tick(job: Job, as_of: datetime) -> None:
    """Process new files, then update the mart to `as_of`; without new files its windows move too."""
    lines = (
        job.spark.readStream.format("text")
        .option("maxFilesPerTrigger", 100_000)
        .load(str(job.folder / "data" / "orders"))
    )
    stream = (
        lines.writeStream.foreachBatch(lambda frame, number: batch(job, frame, number))
        .option("checkpointLocation", str(job.folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    mart(job, as_of)


def batch(job: Job, lines: DataFrame, number: int) -> None:
    """Update all tables except the mart with one batch, exactly once even after a crash."""
    good = parsed(lines).persist()
    try:
        base = base_of(job, number)
        changed = winners(job, good, base).localCheckpoint(eager=True)
        changed.createOrReplaceGlobalTempView("changed")
        orders_in, slots_in, hours_in = days_of(changed)
        slots, dish_slots, hours = net_changes(changed)
        slot = ("slot_date", "slot_at", "restaurant_id")
        steps: list[Callable[[], None]] = [
            lambda: merge_orders(job, orders_in, number),
            lambda: append_events(job, good, number),
            lambda: add_up(job, "dish_slots", dish_slots, (*slot, "dish_id"), "n_lines", slots_in, number),
            lambda: add_up(job, "restaurant_slots", slots, slot, "n_orders", slots_in, number),
            lambda: add_up(
                job, "restaurant_hours", hours, ("hour_date", "hour_at", "restaurant_id"), "n_orders", hours_in, number
            ),
        ]
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(step) for step in steps]:
                done.result()
    finally:
        good.unpersist()


def parsed(lines: DataFrame) -> DataFrame:
    """Return lines as orders; a line that doesn't match its schema is left out."""
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false')"
    item = f"""struct(i.dish_id as dish_id,
        case when i.quantity rlike '^[+]?[0-9]{{1,10}}$' then cast(i.quantity as int) end as quantity,
        case when i.unit_price rlike '{MONEY}' then cast(i.unit_price as decimal(10,2)) end as unit_price)"""
    typed = lines.selectExpr(f"from_json(value, '{LINE}', {options}) as o").where(
        "o is not null and o._corrupt is null"
    )
    typed = typed.selectExpr(
        "o.event_id",
        "o.order_id",
        "case when o.version rlike '^[+]?[0-9]{1,10}$' then cast(o.version as int) end as order_version",
        "o.restaurant_id",
        "o.customer_id",
        "o.status",
        "size(o.items) as n_lines",
        f"transform(o.items, i -> {item}) as items",
        f"case when o.ordered_at rlike '{STAMP}' then cast(o.ordered_at as timestamp) end as ordered_at",
    )
    typed = typed.where(
        f"""event_id is not null and length(order_id) > 0 and order_version >= 1 and restaurant_id is not null
        and customer_id is not null and status in {STATUSES} and n_lines > 0
        and ordered_at between timestamp '2020-01-01' and timestamp '2050-01-01'
        and forall(items, i -> coalesce(i.dish_id is not null and i.quantity > 0 and i.unit_price >= 0, false))"""
    )
    total = "aggregate(items, cast(0 as decimal(18,2)), (t, i) -> cast(t + i.quantity * i.unit_price as decimal(18,2)))"
    return typed.selectExpr(
        *("event_id", "order_id", "order_version", "restaurant_id", "customer_id", "status", "n_lines"),
        f"{total} as order_total",
        *("items", "cast(ordered_at as date) as ordered_date", "ordered_at"),
    )


def base_of(job: Job, number: int) -> int:
    """Return the version of orders before a batch; a batch repeated after a crash starts from the same version."""
    from delta.tables import DeltaTable

    note = job.folder / "base.json"
    known = json.loads(note.read_text()) if note.is_file() else {}
    if known.get("batch") == number:
        return int(known["version"])
    history = DeltaTable.forPath(job.spark, job.path("orders")).history(1).select("version").first()
    assert history is not None
    note.with_suffix(".tmp").write_text(json.dumps({"batch": number, "version": history["version"]}))
    note.with_suffix(".tmp").replace(note)
    return int(history["version"])


def winners(job: Job, good: DataFrame, base: int) -> DataFrame:
    """Return the orders with a newer version, each with its earlier contribution (`was`)."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    newest = Window.partitionBy("order_id").orderBy(f.desc("order_version"), f.desc("event_id"))
    latest = good.withColumn("_place", f.row_number().over(newest)).where("_place = 1").drop("_place")
    days = days_of(good)[0]
    before = job.spark.read.option("versionAsOf", base).format("delta").load(job.path("orders"))
    if days:
        before = before.where(f"ordered_date in ({days})")
    # The new rows are few, so they are the hash table of the join.
    joined = before.alias("t").join(
        f.broadcast(latest.select("order_id")) if base else latest.select("order_id"), "order_id"
    )
    was = joined.selectExpr("order_id as _id", "struct(*) as was")
    found = latest.join(was, latest.order_id == was._id, "left").drop("_id")
    return found.where(
        "was is null or order_version > was.order_version "
        "or (order_version = was.order_version and event_id > was.event_id)"
    )


def days_of(frame: DataFrame) -> list[str]:
    """Return a batch's days as literals, for orders, slots and hours: MERGE prunes only by these."""
    slot = SLOT.replace("ordered_at", "o.ordered_at")
    texts = ["o.ordered_at", slot, f"{slot} - interval 5 minutes"]
    days = [f"collect_set(cast({text} as date))" for text in texts]
    found = frame.alias("o").selectExpr(*days).first()
    assert found is not None
    return [", ".join(f"date '{day}'" for day in sorted(one)) if len(one) <= 400 else "" for one in found]


def net_changes(changed: DataFrame) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return changed orders as changes of the facts: the current contribution minus the earlier one."""
    columns = ("restaurant_id", "ordered_at", "order_total", "items")
    now = changed.where("status <> 'cancelled'").selectExpr(*columns, "1 as w")
    gone = changed.where("was.status <> 'cancelled'").selectExpr(*(f"was.{c}" for c in columns), "-1 as w")
    both = now.unionAll(gone).selectExpr("*", f"{SLOT} as slot_at")
    both = both.selectExpr("*", "cast(slot_at as date) as slot_date")
    slots = both.groupBy("slot_date", "slot_at", "restaurant_id")
    by_slot = slots.agg(*_sums(n_orders="w", total_sales="order_total * w")).where("n_orders <> 0 or total_sales <> 0")
    by_slot = by_slot.localCheckpoint(eager=True)
    lines = both.selectExpr("slot_date", "slot_at", "restaurant_id", "w", "inline(items)")
    by_dish = lines.groupBy("slot_date", "slot_at", "restaurant_id", "dish_id").agg(
        *_sums(quantity="quantity * w", sales="quantity * unit_price * w", n_lines="w")
    )
    by_dish = by_dish.where("n_lines <> 0 or quantity <> 0 or sales <> 0")
    hour = "date_trunc('hour', slot_at - interval 5 minutes)"
    hours = by_slot.selectExpr("*", f"{hour} as hour_at").selectExpr("*", "cast(hour_at as date) as hour_date")
    by_hour = hours.groupBy("hour_date", "hour_at", "restaurant_id").agg(
        *_sums(n_orders="n_orders", total_sales="total_sales")
    )
    return by_slot, by_dish, by_hour


def _sums(**sums: str) -> list[Any]:
    from pyspark.sql import functions as f

    money = ("sales", "total_sales")
    return [
        f.expr(f"cast(sum({text}) as {'decimal(18,2)' if name in money else 'bigint'}) as {name}")
        for name, text in sums.items()
    ]


def append_events(job: Job, good: DataFrame, number: int) -> None:
    """Append the batch's events."""
    writer = good.write.format("delta").mode("append")
    writer.option("txnAppId", "expert.events").option("txnVersion", number).save(job.path("events"))


def merge_orders(job: Job, days: str, number: int) -> None:
    """Merge the newer versions into orders."""
    columns = [part.split()[0] for part in TABLES["events"].split(", ")]
    pruned = f"and t.ordered_date in ({days})" if days else ""
    once(
        job,
        "orders",
        number,
        f"""merge into delta.`{job.path("orders")}` as t
        using (select {", ".join(columns)} from global_temp.changed) as s
        on t.ordered_date = s.ordered_date and t.order_id = s.order_id {pruned}
        when matched then update set * when not matched then insert *""",
    )


def add_up(job: Job, table: str, change: DataFrame, key: tuple[str, ...], count: str, days: str, number: int) -> None:
    """Add a net change to a table of sums; a row without any order left is deleted."""
    pinned = change.localCheckpoint(eager=True)
    pinned.createOrReplaceGlobalTempView(f"add_{table}")
    on = " and ".join(f"t.{k} = s.{k}" for k in key) + (f" and t.{key[0]} in ({days})" if days else "")
    sums = ", ".join(f"{c} = t.{c} + s.{c}" for c in pinned.columns if c not in key)
    once(
        job,
        table,
        number,
        f"""merge into delta.`{job.path(table)}` as t using global_temp.add_{table} as s on {on}
        when matched and t.{count} + s.{count} = 0 then delete
        when matched then update set {sums} when not matched then insert *""",
    )


def once(job: Job, table: str, number: int, statement: str) -> None:
    """Run a MERGE under the batch's number, a setting of its own session; Delta skips a repetition."""
    own = job.spark.newSession()
    own.conf.set("spark.databricks.delta.write.txnAppId", f"expert.{table}")
    own.conf.set("spark.databricks.delta.write.txnVersion", str(number))
    own.sql(statement)


def mart(job: Job, as_of: datetime) -> None:
    """Recompute the dashboard from the slots of the last week, the only ones that it reads."""
    since = as_of - timedelta(hours=168)
    where = (
        f"slot_date >= date '{since:%Y-%m-%d}' and slot_date <= date '{as_of:%Y-%m-%d}' "
        f"and slot_at > timestamp '{since:%Y-%m-%d %H:%M:%S}' and slot_at <= timestamp '{as_of:%Y-%m-%d %H:%M:%S}'"
    )
    now = f"timestamp '{as_of:%Y-%m-%d %H:%M:%S}'"
    inside = f"h -> slot_at > {now} - make_interval(0, 0, 0, 0, h)"
    windows = f"explode(filter(array(1, 24, 168), {inside})) as window_hours"
    rows = job.spark.sql(f"""
        with dish_rows as (select *, {windows} from delta.`{job.path("dish_slots")}` where {where}),
        slot_rows as (select *, {windows} from delta.`{job.path("restaurant_slots")}` where {where}),
        dishes as (
            select window_hours, restaurant_id, dish_id, sum(quantity) as quantity
            from dish_rows group by window_hours, restaurant_id, dish_id
        ),
        ranked as (
            select *, row_number() over (
                partition by window_hours, restaurant_id order by quantity desc, dish_id
            ) as dish_rank
            from dishes
        ),
        lists as (
            select window_hours, restaurant_id,
                array_sort(collect_list(struct(dish_rank, dish_id, dish_name, quantity))) as top_dishes
            from ranked left join global_temp.dishes using (dish_id) where dish_rank <= 3
            group by window_hours, restaurant_id
        ),
        totals as (
            select window_hours, restaurant_id, sum(n_orders) as n_orders,
                cast(sum(total_sales) as decimal(18,2)) as total_sales
            from slot_rows group by window_hours, restaurant_id
        )
        select window_hours, restaurant_id, restaurant_name, n_orders, total_sales,
            coalesce(top_dishes, array()) as top_dishes
        from totals left join lists using (window_hours, restaurant_id)
        left join global_temp.restaurants using (restaurant_id)
    """)
    rows.coalesce(1).write.format("delta").mode("overwrite").save(job.path("restaurant_windows"))


class Expert:
    """The contender."""

    def __init__(self, work: Path, memory: str) -> None:
        from benchmarks.ours import make_project

        make_project(work)
        self.job = start(work, memory)
        self._meter = spark_costs.Meter(self.job.spark, work / "tables")

    def preload(self, as_of: datetime) -> None:
        """Process the whole history as one batch."""
        tick(self.job, as_of)

    def tick(self, as_of: datetime) -> TickCost:
        """Run a tick and measure it."""
        return self._meter.measure(as_of, lambda: tick(self.job, as_of))

    def mart(self) -> list[dict[str, Any]]:
        """Return the mart's rows."""
        return [
            row.asDict(True)
            for row in self.job.spark.read.format("delta").load(self.job.path("restaurant_windows")).collect()
        ]

    def close(self) -> None:
        """Stop Spark."""
        self.job.spark.stop()
