select
    dish_id,
    dishes.prize as price
from {{ ref('dishes') }} as dishes
