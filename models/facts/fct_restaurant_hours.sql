with slots as (
    select * from {{ ref('fct_restaurant_slots') }}
),

-- A slot is named by its end: the one that ends at 13:00 holds orders of the hour that starts at 12:00.
slots_in_hours as (
    select
        restaurant_id,
        n_orders,
        total_sales,
        cast({{ hour_of('slot_at - interval 5 minutes') }} as date) as hour_date,
        {{ hour_of('slot_at - interval 5 minutes') }} as hour_at
    from slots
)

select
    restaurant_id,
    cast(sum(n_orders) as bigint) as n_orders,
    cast(sum(total_sales) as decimal(18, 2)) as total_sales,
    hour_date,
    hour_at
from slots_in_hours
group by hour_date, hour_at, restaurant_id
