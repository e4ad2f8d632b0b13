select order_id, sum(price) as price
from {{ source('shop', 'orders') }}
group by order_id
