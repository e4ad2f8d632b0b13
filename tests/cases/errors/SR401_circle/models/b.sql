with upstream as (
    select * from {{ ref('c') }}
)

select dish_id, price from upstream
