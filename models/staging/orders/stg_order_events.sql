select
    event_id,
    order_id,
    restaurant_id,
    customer_id,
    status,
    version as order_version,
    size(items) as n_lines,
    aggregate(
        items,
        cast(0 as decimal(18, 2)),
        (total, item) -> cast(total + item.quantity * item.unit_price as decimal(18, 2))
    ) as order_total,
    items,
    cast(ordered_at as date) as ordered_date,
    ordered_at
from {{ source('orders', 'events') }}
