select dish_id, price
from {{ ref('dishes') }}
qualify row_number() over (order by price desc) <= 3
