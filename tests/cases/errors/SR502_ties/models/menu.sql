with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dish_id,
    price
from dishes
qualify row_number() over (
    partition by price
    order by price desc
) <= 3
