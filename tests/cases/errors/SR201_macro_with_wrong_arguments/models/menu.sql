select
    dish_id,
    {{ euros('price', 2, 3) }} as price
from {{ ref('dishes') }}
