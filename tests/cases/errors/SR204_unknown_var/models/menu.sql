select dish_id, price
from {{ ref('dishes') }}
where price > {{ var('lowest_price') }}
