select d.dish_id, f.price
from {{ ref('dishes') }} as d, {{ ref('dishes') }} as e right join {{ ref('dishes') }} as f on e.dish_id = f.dish_id
