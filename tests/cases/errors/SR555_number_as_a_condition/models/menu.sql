select
    dish_id,
    cast(case when dish_id then price else 0 end as decimal(10, 2)) as price
from {{ ref('dishes') }}
where price <> true
