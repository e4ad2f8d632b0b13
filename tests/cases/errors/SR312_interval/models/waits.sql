select
    order_id,
    paid_at - ordered_at as wait
from {{ ref('orders') }}
