with lines as (
    select * from {{ ref('stg_order_lines') }}
)

select
    restaurant_id,
    dish_id,
    cast(sum(quantity) as bigint) as quantity,
    cast(sum(line_total) as decimal(18, 2)) as sales,
    count(*) as n_lines,
    slot_date,
    slot_at
from lines
group by slot_date, slot_at, restaurant_id, dish_id
