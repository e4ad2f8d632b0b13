-- The three most expensive dishes of the menu. Two dishes of one price are a tie:
-- which one is the third would depend on the order in which an engine reads them.
with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dish_id,
    price
from dishes
order by price desc
limit 3
