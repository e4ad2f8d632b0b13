select price
from {{ ref('dishes') }} as d
join ({{ ref('dishes') }} as e cross join {{ ref('dishes') }} as f) using (dish_id)
