select
    dish_id,
    price,
    price * 2 as double_price
from {{ ref('dishes') }}
