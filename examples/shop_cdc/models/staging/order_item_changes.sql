select
    order_id,
    line,
    dish_id,
    quantity,
    unit_price,
    op,
    position,
    committed_at,
    transaction_id
from {{ source('shop', 'order_items') }}
