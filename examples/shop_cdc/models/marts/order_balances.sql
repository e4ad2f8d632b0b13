with orders as (
    select * from {{ ref('orders') }}
),

items as (
    select * from {{ ref('order_items') }}
),

item_totals as (
    select
        order_id,
        cast(sum(quantity * unit_price) as decimal(18, 2)) as items_total
    from items
    group by order_id
)

select
    orders.order_id,
    orders.total,
    coalesce(item_totals.items_total, cast(0 as decimal(18, 2))) as items_total,
    orders.total = coalesce(item_totals.items_total, cast(0 as decimal(18, 2))) as is_balanced
from orders
left join item_totals on orders.order_id = item_totals.order_id
