select
    dish_id,
    {{ euros('price') }} as price
from {{ ref('dishes') }}
