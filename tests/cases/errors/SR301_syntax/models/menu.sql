select
    dish_id,
    price
from {{ ref('dishes') }}
where price > > 3
