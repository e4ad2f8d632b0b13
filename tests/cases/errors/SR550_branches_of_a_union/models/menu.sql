select dish_id, price from {{ ref('dishes') }}
union all
select dish_id, 'none' from {{ ref('dishes') }}
