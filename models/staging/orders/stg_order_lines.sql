with orders as (
    select * from {{ ref('stg_orders') }}
    where not is_cancelled
)

select
    orders.order_id,
    orders.restaurant_id,
    line.dish_id,
    line_number,
    line.quantity,
    line.unit_price,
    cast(line.quantity * line.unit_price as decimal(18, 2)) as line_total,
    orders.ordered_at,
    {{ five_minute_slot('orders.ordered_at') }} as slot_at,
    cast({{ five_minute_slot('orders.ordered_at') }} as date) as slot_date
from orders
lateral view posexplode(orders.items) lines as line_number, line
