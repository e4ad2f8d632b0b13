select
    dish_id,
    any(price > 3) as price
from {{ ref('dishes') }}
group by dish_id
