select dish_id, sum(cast(price as double)) as price
from {{ ref('dishes') }}
group by dish_id
