with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dish_id,
    any(price > 3) as price
from dishes
where dish_id in (select dish_id from dishes union all select 1)
    and price >= all (select price from dishes)
    and dish_id:price = '3'
group by dish_id
