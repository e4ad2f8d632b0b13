select
    customer_id,
    city,
    op,
    position,
    committed_at,
    transaction_id
from {{ source('shop', 'customers') }}
