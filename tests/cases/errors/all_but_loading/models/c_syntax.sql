select dish_id price price from {{ ref('b_ref') }}
