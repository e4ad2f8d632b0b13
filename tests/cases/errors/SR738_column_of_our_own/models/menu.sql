select dish_id, price as _n
from {{ ref('dishes') }}
