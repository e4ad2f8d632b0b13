select dish_id, price, timestamp '2026-03-10 12:00:00' as added_at from {{ ref('dishes') }}
