-- name: orders
select restaurant_id, slot_at, order_total, items
from (
    select
        *,
        timestamp_seconds((unix_micros(ordered_at) + 299999999) div 300000000 * 300) as slot_at,
        row_number() over (partition by order_id order by order_version desc, event_id desc) as place
    from events
)
where place = 1 and status <> 'cancelled'

-- name: restaurant_hours
select
    restaurant_id,
    count(*) as n_orders,
    cast(sum(order_total) as decimal(18, 2)) as total_sales,
    date_trunc('hour', slot_at - interval 5 minutes) as hour_at
from orders
group by restaurant_id, date_trunc('hour', slot_at - interval 5 minutes)

-- name: restaurant_windows
with recent as (
    select
        restaurant_id,
        order_total,
        items,
        filter(array(1, 24, 168), h -> slot_at > timestamp '{as_of}' - make_interval(0, 0, 0, 0, h)) as windows
    from orders
    where slot_at > timestamp '{as_of}' - interval 168 hours and slot_at <= timestamp '{as_of}'
),

totals as (
    select window_hours, restaurant_id, count(*) as n_orders, cast(sum(order_total) as decimal(18, 2)) as total_sales
    from recent
    lateral view explode(windows) as window_hours
    group by window_hours, restaurant_id
),

lines as (
    select windows, restaurant_id, item.dish_id, sum(item.quantity) as quantity
    from recent
    lateral view explode(items) as item
    group by windows, restaurant_id, item.dish_id
),

dish_totals as (
    select window_hours, restaurant_id, dish_id, sum(quantity) as quantity
    from lines
    lateral view explode(windows) as window_hours
    group by window_hours, restaurant_id, dish_id
),

ranked as (
    select
        *,
        row_number() over (partition by window_hours, restaurant_id order by quantity desc, dish_id) as dish_rank
    from dish_totals
),

lists as (
    select
        window_hours,
        restaurant_id,
        array_sort(collect_list(struct(dish_rank, dish_id, dish_name, quantity))) as top_dishes
    from ranked
    left join dishes using (dish_id)
    where dish_rank <= 3
    group by window_hours, restaurant_id
)

select window_hours, restaurant_id, restaurant_name, n_orders, total_sales, top_dishes
from totals
left join lists using (window_hours, restaurant_id)
left join restaurants using (restaurant_id)
