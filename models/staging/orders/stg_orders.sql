with events as (
    select * from {{ ref('stg_order_events') }}
)

select
    order_id,
    event_id,
    restaurant_id,
    customer_id,
    status,
    order_version,
    n_lines,
    order_total,
    status = 'cancelled' as is_cancelled,
    items,
    ordered_date,
    ordered_at
from events
qualify row_number() over (
    partition by order_id
    order by order_version desc, event_id desc
) = 1
