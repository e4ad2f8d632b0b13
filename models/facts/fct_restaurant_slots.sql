with orders as (
    select * from {{ ref('stg_orders') }}
    where not is_cancelled
),

orders_in_slots as (
    select
        restaurant_id,
        order_total,
        {{ five_minute_slot('ordered_at') }} as slot_at,
        cast({{ five_minute_slot('ordered_at') }} as date) as slot_date
    from orders
)

select
    restaurant_id,
    count(*) as n_orders,
    cast(sum(order_total) as decimal(18, 2)) as total_sales,
    slot_date,
    slot_at
from orders_in_slots
group by slot_date, slot_at, restaurant_id
