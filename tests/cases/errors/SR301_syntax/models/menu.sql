select
    dish_id,
    price price
from {{ ref('dishes') }}
where price > 3
    and not (dish_id = 2
