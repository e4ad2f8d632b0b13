select
    dish_id,
    {{ ''.__class__.__mro__ }} as price
from {{ ref('dishes') }}
