select
    dish_id,
    round(price, 2, 'half up') as price
from {{ ref('dishes') }}
group by dish_id
