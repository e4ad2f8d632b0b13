select distinct on (dish_id)
    d.dish_id,
    count(d.*) over () as price
from {{ ref('dishes') }} as d (dish_id, price)
where sum(d.price) between symmetric 3 and 1
order by 0
limit all
