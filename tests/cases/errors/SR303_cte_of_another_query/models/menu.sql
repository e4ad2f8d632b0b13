with menu as (
    with inner_dishes as (select * from {{ ref('dishes') }})
    select * from inner_dishes
)

select dish_id, price from inner_dishes
