with recursive levels as (
    select 1 as dish_id
    union all
    select dish_id + 1 from levels
)

select dish_id, cast(dish_id as decimal(10, 2)) as price
from levels
