select
    dish_id,
    dish.price
from {{ ref('dishes') }} as dishes
where dish.price > 3
