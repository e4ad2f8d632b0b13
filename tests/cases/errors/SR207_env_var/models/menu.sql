select dish_id, price
from {{ ref('dishes') }}
where price > {{ env_var('LOWEST_PRICE') }}
