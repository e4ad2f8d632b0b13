select dish_id, price
from {{ ref('dishes') }}
order by price
limit 3
