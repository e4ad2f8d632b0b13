select
    dish_id,
    null as price
from {{ ref('dishes') }}
