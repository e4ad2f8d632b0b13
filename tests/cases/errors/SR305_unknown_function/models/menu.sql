select
    dish_id,
    array_mn(array(price)) as price
from {{ ref('dishes') }}
