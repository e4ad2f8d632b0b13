{{ config(partition_by='hour_date') }}

select
    date_trunc('hour', slot_at - interval 5 minutes) as hour_at,
    restaurant_id,
    sum(n_orders) as n_orders,
    cast(sum(total_sales) as decimal(18, 2)) as total_sales,
    cast(slot_at - interval 5 minutes as date) as hour_date
from {{ ref('fct_restaurant_slots') }}
{% if is_incremental() %}
where slot_at > date '{{ var("as_of")[:10] }}' - interval {{ var("look_back_days") }} days
    and slot_date >= date '{{ var("as_of")[:10] }}' - interval {{ var("look_back_days") }} days
{% endif %}
group by date_trunc('hour', slot_at - interval 5 minutes), restaurant_id, cast(slot_at - interval 5 minutes as date)
