with windows as (
    select unnest([1, 24, 168]) as window_hours
),

restaurant_totals as (
    select
        window_hours,
        restaurant_id,
        sum(n_orders)::bigint as n_orders,
        sum(total_sales)::decimal(18, 2) as total_sales
    from {{ ref('fct_restaurant_slots') }}
    inner join windows
        on slot_at > timestamp '{{ var("as_of") }}' - to_hours(window_hours)
        and slot_at <= timestamp '{{ var("as_of") }}'
    where slot_at > timestamp '{{ var("as_of") }}' - interval 168 hours
    group by window_hours, restaurant_id
),

dish_totals as (
    select window_hours, restaurant_id, dish_id, sum(quantity)::bigint as quantity
    from {{ ref('fct_dish_slots') }}
    inner join windows
        on slot_at > timestamp '{{ var("as_of") }}' - to_hours(window_hours)
        and slot_at <= timestamp '{{ var("as_of") }}'
    where slot_at > timestamp '{{ var("as_of") }}' - interval 168 hours
    group by window_hours, restaurant_id, dish_id
),

best_dishes as (
    select
        *,
        row_number() over (partition by window_hours, restaurant_id order by quantity desc, dish_id) as dish_rank
    from dish_totals
    qualify dish_rank <= 3
),

dish_lists as (
    select
        window_hours,
        restaurant_id,
        list(
            {dish_rank: dish_rank, dish_id: dish_id, dish_name: dish_name, quantity: quantity} order by dish_rank
        ) as top_dishes
    from best_dishes
    left join {{ ref('dishes') }} using (dish_id)
    group by window_hours, restaurant_id
)

select window_hours, restaurant_id, restaurant_name, n_orders, total_sales, top_dishes
from restaurant_totals
left join dish_lists using (window_hours, restaurant_id)
left join {{ ref('restaurants') }} using (restaurant_id)
