select
    max(dish_id) as dish_id,
    sum(price) as price
from {{ ref('dishes') }}
group by window(opened_at, '1 hour')
