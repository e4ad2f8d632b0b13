select dish_id, price, price > 10 as is_deleted
from {{ ref('dishes') }}
