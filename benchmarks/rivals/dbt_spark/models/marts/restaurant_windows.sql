with restaurant_slots as (
    select
        *,
        explode(filter(
            array(1, 24, 168), h -> slot_at > timestamp '{{ var("as_of") }}' - make_interval(0, 0, 0, 0, h)
        )) as window_hours
    from {{ ref('fct_restaurant_slots') }}
    where slot_date >= date '{{ var("as_of")[:10] }}' - interval 8 days
        and slot_at <= timestamp '{{ var("as_of") }}'
),

dish_slots as (
    select
        *,
        explode(filter(
            array(1, 24, 168), h -> slot_at > timestamp '{{ var("as_of") }}' - make_interval(0, 0, 0, 0, h)
        )) as window_hours
    from {{ ref('fct_dish_slots') }}
    where slot_date >= date '{{ var("as_of")[:10] }}' - interval 8 days
        and slot_at <= timestamp '{{ var("as_of") }}'
),

restaurant_totals as (
    select
        window_hours,
        restaurant_id,
        sum(n_orders) as n_orders,
        cast(sum(total_sales) as decimal(18, 2)) as total_sales
    from restaurant_slots
    group by window_hours, restaurant_id
),

dish_totals as (
    select window_hours, restaurant_id, dish_id, sum(quantity) as quantity
    from dish_slots
    group by window_hours, restaurant_id, dish_id
),

best_dishes as (
    select
        *,
        row_number() over (partition by window_hours, restaurant_id order by quantity desc, dish_id) as dish_rank
    from dish_totals
),

dish_lists as (
    select
        window_hours,
        restaurant_id,
        array_sort(collect_list(struct(dish_rank, dish_id, dish_name, quantity))) as top_dishes
    from best_dishes
    left join {{ ref('dishes') }} using (dish_id)
    where dish_rank <= 3
    group by window_hours, restaurant_id
)

select window_hours, restaurant_id, restaurant_name, n_orders, total_sales, top_dishes
from restaurant_totals
left join dish_lists using (window_hours, restaurant_id)
left join {{ ref('restaurants') }} using (restaurant_id)
