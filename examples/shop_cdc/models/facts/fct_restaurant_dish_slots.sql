with orders as (
    select * from {{ ref('orders') }}
    where status <> 'cancelled'
),

items as (
    select * from {{ ref('order_items') }}
)

select
    orders.restaurant_id,
    items.dish_id,
    cast(sum(items.quantity) as bigint) as quantity,
    {{ five_minute_slot('orders.ordered_at') }} as slot_at
from orders
inner join items on orders.order_id = items.order_id
group by orders.restaurant_id, items.dish_id, slot_at
