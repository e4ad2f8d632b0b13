select dish_id, collect_list(price) as prices
from {{ ref('dishes') }}
group by dish_id
