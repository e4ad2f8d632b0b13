select
    order_id,
    restaurant_id,
    customer_id,
    status,
    version,
    total,
    ordered_at,
    op,
    position,
    committed_at,
    transaction_id
from {{ source('shop', 'orders') }}
