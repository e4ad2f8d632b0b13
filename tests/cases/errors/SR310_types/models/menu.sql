select
    dish_id,
    cast('2' * price as decimal(10, 2)) + upper(dish_id)
        as price
from {{ ref('dishes') }}
