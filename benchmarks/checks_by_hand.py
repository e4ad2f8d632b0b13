"""The reference project's checks as one hand-written query for each table, with a count for each rule.

The queries run over whole tables, in DuckDB. A row that violates several rules counts for each of them. Rules that
quarantine lines at landing are missing, because no row of a table violates them.
"""

from __future__ import annotations

QUERIES = {
    "stg_order_events": """
        select
            count(*) filter (where event_id is null or order_id is null or restaurant_id is null or customer_id is null
                or status is null or order_version is null or n_lines is null or order_total is null
                or items is null or ordered_date is null or ordered_at is null) as nulls,
            count(*) filter (where not regexp_matches(restaurant_id, '^r[0-9]{4,}$')) as test_restaurants,
            count(*) filter (where ordered_at > $as_of) as dated_in_the_future
        from stg_order_events
    """,
    "stg_orders": """
        select
            count(*) filter (where order_id is null or event_id is null or restaurant_id is null or customer_id is null
                or status is null or order_version is null or n_lines is null or order_total is null
                or is_cancelled is null or items is null or ordered_date is null or ordered_at is null) as nulls,
            count(*) - count(distinct order_id) as repeated,
            count(*) filter (where order_total < 0) as negative,
            count(*) filter (where order_total > 10000) as dear,
            count(*) filter (where ordered_date <> ordered_at::date) as in_another_day,
            count(*) filter (where n_lines not between 1 and 200) as odd_lines
        from stg_orders
    """,
    "fct_restaurant_slots": """
        select
            count(*) filter (where restaurant_id is null or n_orders is null or total_sales is null
                or slot_date is null or slot_at is null) as nulls,
            count(*) - count(distinct (slot_date, slot_at, restaurant_id)) as repeated,
            count(*) filter (where n_orders < 1) as without_orders,
            count(*) filter (where total_sales < 0) as negative,
            count(*) filter (where slot_date <> slot_at::date) as in_another_day,
            count(*) filter (where epoch_us(slot_at) % 300000000 <> 0) as off_the_grid
        from fct_restaurant_slots
    """,
    "fct_restaurant_dish_slots": """
        select
            count(*) filter (where restaurant_id is null or dish_id is null or quantity is null or sales is null
                or n_lines is null or slot_date is null or slot_at is null) as nulls,
            count(*) - count(distinct (slot_date, slot_at, restaurant_id, dish_id)) as repeated,
            count(*) filter (where quantity < 1) as without_dishes,
            count(*) filter (where sales < 0) as negative,
            count(*) filter (where quantity < n_lines) as fewer_than_lines,
            count(*) filter (where epoch_us(slot_at) % 300000000 <> 0) as off_the_grid,
            count(*) filter (where quantity > 1000) as too_many
        from fct_restaurant_dish_slots
    """,
    "fct_restaurant_hours": """
        select
            count(*) filter (where restaurant_id is null or n_orders is null or total_sales is null
                or hour_date is null or hour_at is null) as nulls,
            count(*) - count(distinct (hour_date, hour_at, restaurant_id)) as repeated,
            count(*) filter (where n_orders < 1) as without_orders,
            count(*) filter (where total_sales < 0) as negative,
            count(*) filter (where hour_at <> date_trunc('hour', hour_at)) as not_whole
        from fct_restaurant_hours
    """,
    "restaurant_windows": """
        select
            count(*) filter (where window_hours is null or restaurant_id is null or n_orders is null
                or total_sales is null or top_dishes is null) as nulls,
            count(*) - count(distinct (window_hours, restaurant_id)) as repeated,
            count(*) filter (where window_hours not in (1, 24, 168)) as other_windows,
            count(*) filter (where n_orders < 1) as without_orders,
            count(*) filter (where total_sales < 0) as negative,
            count(*) filter (where len(top_dishes) > 3) as too_many_dishes,
            count(*) filter (where restaurant_name is null) as nameless
        from restaurant_windows
    """,
}
