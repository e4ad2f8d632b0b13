select
    dish_id,
    cast(rand() as decimal(10, 2)) as price
from {{ ref('dishes') }}
