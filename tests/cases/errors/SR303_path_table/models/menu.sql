select dish_id, price
from {{ ref('dishes') }}
union all
select 1 as dish_id, 2 as price
from text.`/etc/passwd`
