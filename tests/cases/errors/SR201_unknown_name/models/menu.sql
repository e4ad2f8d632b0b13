select
    dish_id,
    {{ cents_to_euro('price') }} as price
from {{ ref('dishes') }}
