select order_id, price
from {{ source('shop', 'orders') }}
