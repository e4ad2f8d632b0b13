select transform(dish_id, price) using 'cat' as (dish_id, price)
from {{ ref('dishes') }}
