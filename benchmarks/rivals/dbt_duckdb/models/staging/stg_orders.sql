{{ config(unique_key='order_id', incremental_strategy='delete+insert') }}

with events as (
    select * from {{ ref('stg_order_events') }}
    {% if is_incremental() %}
    where file > '{{ newest_file() }}'
    {% endif %}
),

candidates as (
    select order_id, event_id, order_version, restaurant_id, status, order_total, items, ordered_at, file
    from events
    {% if is_incremental() %}
    union all
    -- A version that comes late must not take the place of a newer one; the file is that of the newest news.
    select known.* replace ((select max(file) from events) as file)
    from {{ this }} as known
    where known.order_id in (select order_id from events)
    {% endif %}
)

select
    order_id,
    event_id,
    order_version,
    restaurant_id,
    status,
    order_total,
    items,
    ordered_at,
    file
from candidates
qualify row_number() over (partition by order_id order by order_version desc, event_id desc) = 1
