select dish_id, price from {{ ref('dishes') }}
except
select dish_id from {{ ref('dishes') }}
