-- `events` are the tick's own, parsed. Of each order the newest of them, where it is newer than what is known.
create or replace temp table newest as
select order_id, event_id, version, restaurant_id, status = 'cancelled' as is_cancelled, slot_at, order_total, items
from events
qualify row_number() over (partition by order_id order by version desc, event_id desc) = 1;

create or replace temp table known as
select orders.*
from orders
inner join newest using (order_id);

create or replace temp table winners as
select newest.*
from newest
left join known using (order_id)
where known.order_id is null or (newest.version, newest.event_id) > (known.version, known.event_id);

-- What the facts have to take in: what the winners say, less what was said before.
create or replace temp table net as
select 1 as weight, restaurant_id, slot_at, order_total, items from winners where not is_cancelled
union all
select -1, known.restaurant_id, known.slot_at, known.order_total, known.items
from known
inner join winners using (order_id)
where not known.is_cancelled;

delete from orders where order_id in (select order_id from winners inner join known using (order_id));
insert into orders select * from winners;

merge into restaurant_slots as fact
using (
    select slot_at, restaurant_id, sum(weight) as n_orders, sum(weight * order_total) as total_sales
    from net
    group by slot_at, restaurant_id
) as change
on fact.slot_at = change.slot_at and fact.restaurant_id = change.restaurant_id
when matched and fact.n_orders + change.n_orders = 0 then delete
when matched then update set
    n_orders = fact.n_orders + change.n_orders, total_sales = fact.total_sales + change.total_sales
when not matched then insert values (change.slot_at, change.restaurant_id, change.n_orders, change.total_sales);

merge into dish_slots as fact
using (
    select slot_at, restaurant_id, item.dish_id as dish_id, sum(weight * item.quantity) as quantity
    from (select slot_at, restaurant_id, weight, unnest(items) as item from net)
    group by slot_at, restaurant_id, item.dish_id
) as change
on fact.slot_at = change.slot_at and fact.restaurant_id = change.restaurant_id and fact.dish_id = change.dish_id
when matched and fact.quantity + change.quantity = 0 then delete
when matched then update set quantity = fact.quantity + change.quantity
when not matched then insert values (change.slot_at, change.restaurant_id, change.dish_id, change.quantity);

merge into restaurant_hours as fact
using (
    select
        date_trunc('hour', slot_at - interval 5 minutes) as hour_at,
        restaurant_id,
        sum(weight) as n_orders,
        sum(weight * order_total) as total_sales
    from net
    group by hour_at, restaurant_id
) as change
on fact.hour_at = change.hour_at and fact.restaurant_id = change.restaurant_id
when matched and fact.n_orders + change.n_orders = 0 then delete
when matched then update set
    n_orders = fact.n_orders + change.n_orders, total_sales = fact.total_sales + change.total_sales
when not matched then insert values (change.hour_at, change.restaurant_id, change.n_orders, change.total_sales);

create or replace table restaurant_windows as
with windows as (
    select unnest([1, 24, 168]) as window_hours
),

restaurant_totals as (
    select
        window_hours,
        restaurant_id,
        sum(n_orders)::bigint as n_orders,
        sum(total_sales)::decimal(18, 2) as total_sales
    from restaurant_slots
    inner join windows
        on slot_at > $as_of::timestamp - to_hours(window_hours) and slot_at <= $as_of::timestamp
    where slot_at > $as_of::timestamp - interval 168 hours
    group by window_hours, restaurant_id
),

dish_totals as (
    select window_hours, restaurant_id, dish_id, sum(quantity)::bigint as quantity
    from dish_slots
    inner join windows
        on slot_at > $as_of::timestamp - to_hours(window_hours) and slot_at <= $as_of::timestamp
    where slot_at > $as_of::timestamp - interval 168 hours
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
    left join dishes using (dish_id)
    group by window_hours, restaurant_id
)

select window_hours, restaurant_id, restaurant_name, n_orders, total_sales, top_dishes
from restaurant_totals
left join dish_lists using (window_hours, restaurant_id)
left join restaurants using (restaurant_id);
