select dish_id, count(case when price in (select d.price from {{ ref('dishes') }} as d) then 1 end) as n
from {{ ref('dishes') }}
group by dish_id
