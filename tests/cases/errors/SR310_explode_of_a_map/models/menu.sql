-- Each entry of a map is a row: its key and its value.
with dishes as (
    select * from {{ ref('dishes') }}
)

select
    dish_id,
    cast(entry as decimal(10, 2)) as price
from dishes
lateral view explode(map('price', price)) e as entry
