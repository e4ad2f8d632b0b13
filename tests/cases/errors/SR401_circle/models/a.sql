with upstream as (
    select * from {{ ref('b') }}
)

select dish_id, price from upstream
