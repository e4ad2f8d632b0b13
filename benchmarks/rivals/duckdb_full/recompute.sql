-- Each order once, in its newest version, over all of history; only then may the cancelled ones go.
create or replace temp table orders as
select restaurant_id, slot_at, order_total, items
from (
    select *
    from events
    qualify row_number() over (partition by order_id order by version desc, event_id desc) = 1
)
where status <> 'cancelled';

create or replace table restaurant_hours as
select
    restaurant_id,
    count(*) as n_orders,
    sum(order_total)::decimal(18, 2) as total_sales,
    date_trunc('hour', slot_at - interval 5 minutes) as hour_at
from orders
group by restaurant_id, hour_at;

create or replace table restaurant_windows as
with windows as (
    select unnest([1, 24, 168]) as window_hours
),

restaurant_totals as (
    select window_hours, restaurant_id, count(*) as n_orders, sum(order_total)::decimal(18, 2) as total_sales
    from orders
    inner join windows
        on slot_at > $as_of::timestamp - to_hours(window_hours) and slot_at <= $as_of::timestamp
    group by window_hours, restaurant_id
),

lines as (
    select restaurant_id, slot_at, unnest(items) as item
    from orders
    where slot_at > $as_of::timestamp - interval 168 hours and slot_at <= $as_of::timestamp
),

dish_totals as (
    select window_hours, restaurant_id, item.dish_id as dish_id, sum(item.quantity)::bigint as quantity
    from lines
    inner join windows on slot_at > $as_of::timestamp - to_hours(window_hours)
    group by window_hours, restaurant_id, item.dish_id
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
    left join dishes using (dish_id)
    group by window_hours, restaurant_id
)

select window_hours, restaurant_id, restaurant_name, n_orders, total_sales, top_dishes
from restaurant_totals
left join dish_lists using (window_hours, restaurant_id)
left join restaurants using (restaurant_id);
