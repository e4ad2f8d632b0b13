select dish_id, price, count(*) as n
from {{ ref('dishes') }}
group by rollup (dish_id), price with cube
