select dish_id, prize as price from {{ ref('c_syntax') }}
