-- How many times each dish costs more than ten. In Spark a condition is not a number,
-- so it can't be added up as in other databases.
with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dish_id,
    cast(sum(price > 10) as decimal(10, 2)) as price
from dishes
group by dish_id
having avg(price > 20) > 0.5
