select
    dish_id,
    price
from {{ ref('dishes') }}
where localtimestamp() > timestamp '2026-01-01'
