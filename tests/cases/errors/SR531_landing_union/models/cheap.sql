select order_id, price
from {{ ref('orders') }}
where price < 5
