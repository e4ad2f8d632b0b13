with orders as (
    select * from {{ ref('orders') }}
    where status <> 'cancelled'
)

select
    restaurant_id,
    count(*) as n_orders,
    cast(sum(total) as decimal(18, 2)) as total_sales,
    {{ five_minute_slot('ordered_at') }} as slot_at
from orders
group by restaurant_id, slot_at
