-- What there is to eat.
with dishes as (
    select * from {{ ref('dishs') }}
),

drinks as (
    select * from {{ ref('drinks') }}
)

select dish_id, price from dishes
