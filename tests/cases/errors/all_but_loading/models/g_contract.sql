select dish_id, price as prices from {{ ref('dishes') }}
