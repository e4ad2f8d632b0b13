select
    a.dish_id,
    price
from {{ ref('dishes') }} as a
inner join {{ ref('dishes') }} as b on a.dish_id = b.dish_id
