{{ config(incremental_strategy='append') }}

with lines as (
    select *
    from read_json(
        'data/orders/*.jsonl',
        format = 'newline_delimited',
        ignore_errors = true,
        filename = 'file',
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
    {% if is_incremental() %}
    where file > '{{ newest_file() }}'
    {% endif %}
)

select
    event_id,
    order_id,
    version as order_version,
    restaurant_id,
    customer_id,
    status,
    list_sum([item.quantity * item.unit_price for item in items])::decimal(18, 2) as order_total,
    items,
    ordered_at at time zone 'UTC' as ordered_at,
    file
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
