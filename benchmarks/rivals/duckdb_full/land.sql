insert into events
with lines as (
    select *
    from read_json(
        $files,
        format = 'newline_delimited',
        ignore_errors = true,
        columns = {
            event_id: 'varchar',
            order_id: 'varchar',
            version: 'integer',
            restaurant_id: 'varchar',
            customer_id: 'varchar',
            ordered_at: 'timestamptz',
            status: 'varchar',
            items: 'struct(dish_id varchar, quantity integer, unit_price decimal(10, 2))[]'
        }
    )
)

select
    event_id,
    order_id,
    version,
    restaurant_id,
    status,
    ordered_at at time zone 'UTC' as ordered_at,
    -- The end of the five minutes that hold it: (slot_at - 5 minutes, slot_at].
    time_bucket(interval 5 minutes, ordered_at at time zone 'UTC' + interval 299999999 microseconds) as slot_at,
    list_sum([item.quantity * item.unit_price for item in items])::decimal(18, 2) as order_total,
    items
from lines
where event_id is not null
    and length(order_id) > 0
    and version is not null
    and restaurant_id is not null
    and customer_id is not null
    and status in ('placed', 'updated', 'cancelled', 'delivered')
    and ordered_at between '2020-01-01 00:00:00Z' and '2050-01-01 00:00:00Z'
    and len(items) > 0
    and len([
        item for item in items
        if item.dish_id is null or coalesce(item.quantity, 0) <= 0 or coalesce(item.unit_price, -1) < 0
    ]) = 0
