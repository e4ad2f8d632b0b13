select
    dishes.dish,
    dishes.prize as price
from {{ ref('dishes') }} as dishes
inner join {{ ref('dishes') }} as others on dishes.dish_id = others.dish
