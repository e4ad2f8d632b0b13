MODEL (
    name bench.stg_orders,
    kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id),
    grain order_id
);

-- All events of the orders of which one has come: a version that comes late must not take a newer one's place.
SELECT
    order_id,
    event_id,
    order_version,
    restaurant_id,
    status,
    order_total,
    items,
    ordered_at
FROM bench.stg_order_events
WHERE order_id IN (
    SELECT order_id FROM bench.stg_order_events WHERE arrived_at BETWEEN @start_dt AND @end_dt
)
QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY order_version DESC, event_id DESC) = 1
