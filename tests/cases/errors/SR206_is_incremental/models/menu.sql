select dish_id, price
from {{ ref('dishes') }}
{% if is_incremental() %}
where dish_id > (select max(dish_id) from {{ this }})
{% endif %}
