{{ config(partition_by='slot_date') }}

with orders as (
    select *, {{ five_minute_slot('ordered_at') }} as slot_at
    from {{ ref('stg_orders') }}
    where status <> 'cancelled'
    {% if is_incremental() %}
        and ordered_date >= date '{{ var("as_of")[:10] }}' - interval {{ var("look_back_days") + 1 }} days
    {% endif %}
)

select
    slot_at,
    restaurant_id,
    count(*) as n_orders,
    cast(sum(order_total) as decimal(18, 2)) as total_sales,
    cast(slot_at as date) as slot_date
from orders
{% if is_incremental() %}
where slot_at >= date '{{ var("as_of")[:10] }}' - interval {{ var("look_back_days") }} days
{% endif %}
group by slot_at, restaurant_id
