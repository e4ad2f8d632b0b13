select dish_id, price
from {{ ref('dishes') }}
order by price, dish_id
limit 3
