select order_id, price
from {{ source('shop', 'orders') }}
union all
select order_id, -price
from {{ source('shop', 'orders') }}
