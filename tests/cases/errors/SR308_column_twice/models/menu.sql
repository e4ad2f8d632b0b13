select
    dish_id,
    price,
    price * 2 as price
from {{ ref('dishes') }}
