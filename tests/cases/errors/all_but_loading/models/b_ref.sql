select dish_id, price from {{ ref('dish') }}
