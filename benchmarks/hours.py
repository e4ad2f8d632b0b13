"""The hourly facts over all of history, computed by hand-written DuckDB SQL from the raw lines. Shell: DuckDB.

A backfill's orders are older than the dashboard's windows, so the mart doesn't show whether they were processed.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.contenders import RIVALS

Hours = dict[tuple[str, str], tuple[int, Decimal]]
NEWEST = """
select
    strftime(date_trunc('hour', slot_at - interval 5 minutes), '%Y-%m-%dT%H') as hour,
    restaurant_id,
    count(*) as n_orders,
    sum(order_total)::decimal(18, 2) as total_sales
from (
    select restaurant_id, slot_at, order_total, status
    from events
    qualify row_number() over (partition by order_id order by version desc, event_id desc) = 1
)
where status <> 'cancelled'
group by all
"""


def right(files: Iterable[str], folder: Path) -> Hours:
    """Return the right facts; DuckDB may spill to disk beside the order files."""
    import duckdb

    with duckdb.connect(str(folder / "hours.duckdb"), config={"threads": 2, "memory_limit": "4GB"}) as db:
        db.execute("set timezone = 'UTC'")
        schema = (RIVALS / "duckdb_full" / "schema.sql").read_text()
        db.execute(schema.partition("create table if not exists landed")[0])
        db.execute("delete from events")
        db.execute((RIVALS / "duckdb_full" / "land.sql").read_text(), {"files": sorted(files)})
        rows = db.execute(NEWEST).fetchall()
    (folder / "hours.duckdb").unlink()
    return {(hour, restaurant): (n, sales) for hour, restaurant, n, sales in rows}


def wrong(rows: Iterable[dict[str, Any]], expected: Hours) -> int:
    """Return the number of missing, unexpected or different hours of restaurants."""
    found = {
        (f"{row['hour_at']:%Y-%m-%dT%H}", row["restaurant_id"]): (row["n_orders"], row["total_sales"]) for row in rows
    }
    return sum(found.get(key) != expected.get(key) for key in found.keys() | expected.keys())
