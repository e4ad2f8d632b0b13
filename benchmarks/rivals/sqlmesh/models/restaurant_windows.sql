MODEL (
    name bench.restaurant_windows,
    kind FULL,
    grain (window_hours, restaurant_id),
    audits (not_null(columns := (window_hours, restaurant_id)))
);

WITH windows AS (
    SELECT unnest([1, 24, 168]) AS window_hours
),

slots AS (
    SELECT * FROM bench.fct_restaurant_slots
    WHERE slot_at > @execution_dt - INTERVAL 168 HOURS AND slot_at <= @execution_dt
),

dish_slots AS (
    SELECT * FROM bench.fct_dish_slots
    WHERE slot_at > @execution_dt - INTERVAL 168 HOURS AND slot_at <= @execution_dt
),

restaurant_totals AS (
    SELECT
        window_hours,
        restaurant_id,
        CAST(sum(n_orders) AS BIGINT) AS n_orders,
        CAST(sum(total_sales) AS DECIMAL(18, 2)) AS total_sales
    FROM slots
    INNER JOIN windows ON slot_at > @execution_dt - to_hours(window_hours)
    GROUP BY window_hours, restaurant_id
),

dish_totals AS (
    SELECT window_hours, restaurant_id, dish_id, CAST(sum(quantity) AS BIGINT) AS quantity
    FROM dish_slots
    INNER JOIN windows ON slot_at > @execution_dt - to_hours(window_hours)
    GROUP BY window_hours, restaurant_id, dish_id
),

best_dishes AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY window_hours, restaurant_id ORDER BY quantity DESC, dish_id) AS dish_rank
    FROM dish_totals
    QUALIFY dish_rank <= 3
),

dish_lists AS (
    SELECT
        best_dishes.window_hours,
        best_dishes.restaurant_id,
        list(
            {
                'dish_rank': best_dishes.dish_rank,
                'dish_id': best_dishes.dish_id,
                'dish_name': dishes.dish_name,
                'quantity': best_dishes.quantity
            }
            ORDER BY best_dishes.dish_rank
        ) AS top_dishes
    FROM best_dishes
    LEFT JOIN bench.dishes AS dishes ON best_dishes.dish_id = dishes.dish_id
    GROUP BY best_dishes.window_hours, best_dishes.restaurant_id
)

SELECT
    totals.window_hours,
    totals.restaurant_id,
    restaurants.restaurant_name,
    totals.n_orders,
    totals.total_sales,
    lists.top_dishes
FROM restaurant_totals AS totals
LEFT JOIN dish_lists AS lists
    ON totals.window_hours = lists.window_hours AND totals.restaurant_id = lists.restaurant_id
LEFT JOIN bench.restaurants AS restaurants ON totals.restaurant_id = restaurants.restaurant_id
