{{ config(unique_key='hour_date', incremental_strategy='delete+insert') }}

select
    date_trunc('hour', slot_at - interval 5 minutes) as hour_at,
    (slot_at - interval 5 minutes)::date as hour_date,
    restaurant_id,
    sum(n_orders)::bigint as n_orders,
    sum(total_sales)::decimal(18, 2) as total_sales
from {{ ref('fct_restaurant_slots') }}
{% if is_incremental() %}
where slot_at > timestamp '{{ var("as_of") }}'::date - {{ var("look_back_days") }}
{% endif %}
group by hour_at, hour_date, restaurant_id
