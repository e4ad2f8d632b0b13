{{ config(unique_key='slot_date', incremental_strategy='delete+insert') }}

with orders as (
    select *, {{ five_minute_slot('ordered_at') }} as slot_at
    from {{ ref('stg_orders') }}
    where status <> 'cancelled'
),

lines as (
    select slot_at, restaurant_id, unnest(items) as item
    from orders
    {% if is_incremental() %}
    where slot_at >= timestamp '{{ var("as_of") }}'::date - {{ var("look_back_days") }}
    {% endif %}
)

select
    slot_at,
    slot_at::date as slot_date,
    restaurant_id,
    item.dish_id as dish_id,
    sum(item.quantity)::bigint as quantity
from lines
group by slot_at, restaurant_id, item.dish_id
