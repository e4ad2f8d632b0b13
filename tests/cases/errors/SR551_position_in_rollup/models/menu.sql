select dish_id, price, count(*) as n
from {{ ref('dishes') }}
group by rollup (1, 4)
