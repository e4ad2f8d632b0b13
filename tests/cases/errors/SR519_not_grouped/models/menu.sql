select dish_id, price, count(*) as n_rows
from {{ ref('dishes') }}
group by dish_id
