select dish_id price price from {{ ref('menu') }}
