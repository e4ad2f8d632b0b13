select dish_id, price from {{ ref('e_circle') }}
