select dish_id, price in (select d.price from {{ ref('dishes') }} as d where d.dish_id > 1) as as_dear
from {{ ref('dishes') }}
