MODEL (
    name bench.fct_dish_slots,
    kind INCREMENTAL_BY_TIME_RANGE (time_column slot_start_at, lookback 1152),
    grain (slot_at, restaurant_id, dish_id)
);

WITH orders AS (
    SELECT
        time_bucket(INTERVAL 5 MINUTES, ordered_at + INTERVAL 299999999 MICROSECONDS) AS slot_at,
        restaurant_id,
        items
    FROM bench.stg_orders
    WHERE status <> 'cancelled'
),

lines AS (
    SELECT slot_at, restaurant_id, unnest(items) AS item
    FROM orders
    WHERE slot_at - INTERVAL 5 MINUTES BETWEEN @start_dt AND @end_dt
)

SELECT
    slot_at,
    slot_at - INTERVAL 5 MINUTES AS slot_start_at,
    restaurant_id,
    item.dish_id AS dish_id,
    CAST(sum(item.quantity) AS BIGINT) AS quantity
FROM lines
GROUP BY slot_at, restaurant_id, item.dish_id
