select dish_id, price from {{ ref('dishes') }}
