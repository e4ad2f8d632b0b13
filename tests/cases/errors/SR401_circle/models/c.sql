with upstream as (
    select * from {{ ref('a') }}
)

select dish_id, price from upstream
