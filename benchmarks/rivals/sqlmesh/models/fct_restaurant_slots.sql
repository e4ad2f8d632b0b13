MODEL (
    name bench.fct_restaurant_slots,
    -- Orders are corrected and cancelled for some days: 1152 times five minutes are four.
    kind INCREMENTAL_BY_TIME_RANGE (time_column slot_start_at, lookback 1152),
    grain (slot_at, restaurant_id)
);

-- A slot is named by its end, and an interval of time holds its start.
WITH orders AS (
    SELECT
        time_bucket(INTERVAL 5 MINUTES, ordered_at + INTERVAL 299999999 MICROSECONDS) AS slot_at,
        restaurant_id,
        order_total
    FROM bench.stg_orders
    WHERE status <> 'cancelled'
)

SELECT
    slot_at,
    slot_at - INTERVAL 5 MINUTES AS slot_start_at,
    restaurant_id,
    count(*) AS n_orders,
    CAST(sum(order_total) AS DECIMAL(18, 2)) AS total_sales
FROM orders
WHERE slot_at - INTERVAL 5 MINUTES BETWEEN @start_dt AND @end_dt
GROUP BY slot_at, restaurant_id
