select
    dish_id,
    cast(price + hash(dish_id) as decimal(10, 2)) as price
from {{ ref('dishes') }}
where date_format(current_timestamp(), 'G') = 'AD'
