with restaurant_slots as (
    select * from {{ ref('fct_restaurant_slots') }}
),

dish_slots as (
    select * from {{ ref('fct_restaurant_dish_slots') }}
),

restaurant_slots_in_windows as (
    {{ rolling_windows(
        'restaurant_slots', 'slot_at', ['restaurant_id', 'n_orders', 'total_sales'], var('window_hours')
    ) }}
),

restaurant_totals as (
    select
        window_hours,
        restaurant_id,
        cast(sum(n_orders) as bigint) as n_orders,
        cast(sum(total_sales) as decimal(18, 2)) as total_sales
    from restaurant_slots_in_windows
    group by window_hours, restaurant_id
),

dish_slots_in_windows as (
    {{ rolling_windows('dish_slots', 'slot_at', ['restaurant_id', 'dish_id', 'quantity'], var('window_hours')) }}
),

dish_totals as (
    select
        window_hours,
        restaurant_id,
        dish_id,
        cast(sum(quantity) as bigint) as quantity
    from dish_slots_in_windows
    group by window_hours, restaurant_id, dish_id
),

best_dishes as (
    select
        window_hours,
        restaurant_id,
        dish_id,
        quantity,
        cast(
            row_number() over (
                partition by window_hours, restaurant_id
                order by quantity desc, dish_id
            ) as int
        ) as dish_rank
    from dish_totals
    qualify dish_rank <= 3
),

dish_lists as (
    select
        window_hours,
        restaurant_id,
        array_sort(
            collect_list(struct(dish_rank as dish_rank, dish_id as dish_id, quantity as quantity))
        ) as top_dishes
    from best_dishes
    group by window_hours, restaurant_id
)

select
    restaurant_totals.window_hours,
    restaurant_totals.restaurant_id,
    restaurant_totals.n_orders,
    restaurant_totals.total_sales,
    coalesce(dish_lists.top_dishes, array()) as top_dishes
from restaurant_totals
left join dish_lists
    on restaurant_totals.window_hours = dish_lists.window_hours
    and restaurant_totals.restaurant_id = dish_lists.restaurant_id
