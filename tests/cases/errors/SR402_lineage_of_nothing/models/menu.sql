with priced as (
    select
        dish_id,
        price / 2 as half,
        {{ var('rate', 3) }} * price as dear,
        case when price > 10 then 'dear' end as word
    from {{ ref('dishes') }}
)

select
    cast(dish_id as bigint) as dish_id,
    half,
    round(sum(dear), 1) as dear,
    count(*) as n,
    max(word) as word
from priced
group by dish_id, half
