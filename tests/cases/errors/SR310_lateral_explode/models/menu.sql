-- Spark has lateral table functions, DuckDB has not.
with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dishes.dish_id,
    e.price
from dishes
cross join lateral explode(array(dishes.price)) as e(price)
