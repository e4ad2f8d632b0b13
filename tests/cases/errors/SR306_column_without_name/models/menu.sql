select
    dish_id,
    cast(1.5 as decimal(10, 2))
from {{ ref('dishes') }}
