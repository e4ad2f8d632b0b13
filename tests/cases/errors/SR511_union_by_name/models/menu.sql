select dish_id, price from {{ ref('dishes') }}
union all by name
select price, dish_id from {{ ref('dishes') }}
