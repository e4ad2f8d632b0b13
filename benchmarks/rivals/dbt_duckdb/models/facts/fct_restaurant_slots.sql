{{ config(unique_key='slot_date', incremental_strategy='delete+insert') }}

with orders as (
    select *, {{ five_minute_slot('ordered_at') }} as slot_at
    from {{ ref('stg_orders') }}
    where status <> 'cancelled'
)

select
    slot_at,
    slot_at::date as slot_date,
    restaurant_id,
    count(*) as n_orders,
    sum(order_total)::decimal(18, 2) as total_sales
from orders
{% if is_incremental() %}
where slot_at >= timestamp '{{ var("as_of") }}'::date - {{ var("look_back_days") }}
{% endif %}
group by slot_at, restaurant_id
