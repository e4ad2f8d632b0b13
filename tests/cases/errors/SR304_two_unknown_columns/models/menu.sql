with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dish,
    prize as price
from dishes
where cost > 3
