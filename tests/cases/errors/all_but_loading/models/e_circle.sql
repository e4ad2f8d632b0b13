select dish_id, price from {{ ref('f_circle') }}
