select dish_id, hll_sketch_agg(price) as prices
from {{ ref('dishes') }}
group by dish_id
