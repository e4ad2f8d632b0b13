select menu.dish_id
from {{ ref('menu') }} as menu
join {{ ref('dishes') }} as dishes on dishes.dish_id = menu.dish_id
where menu.price > dishes.price
