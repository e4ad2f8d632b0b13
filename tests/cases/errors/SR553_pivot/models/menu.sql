with prices as (
    select dish_id, price from {{ ref('dishes') }}
)

select dish_id, price
from prices
pivot (max(price) for dish_id in (1, 2))
