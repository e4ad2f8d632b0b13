MODEL (
    name bench.fct_restaurant_hours,
    kind INCREMENTAL_BY_TIME_RANGE (time_column hour_at, lookback 1152),
    grain (hour_at, restaurant_id)
);

WITH slots AS (
    SELECT
        date_trunc('hour', slot_at - INTERVAL 5 MINUTES) AS hour_at,
        restaurant_id,
        n_orders,
        total_sales
    FROM bench.fct_restaurant_slots
)

SELECT
    hour_at,
    restaurant_id,
    CAST(sum(n_orders) AS BIGINT) AS n_orders,
    CAST(sum(total_sales) AS DECIMAL(18, 2)) AS total_sales
FROM slots
WHERE hour_at BETWEEN @start_dt AND @end_dt
GROUP BY hour_at, restaurant_id
