{{ config(incremental_strategy='append', partition_by='ordered_date') }}

with lines as (
    select
        from_json(
            value,
            'event_id string, order_id string, version string, restaurant_id string, customer_id string, ordered_at string, status string, items array<struct<dish_id: string, quantity: string, unit_price: string>>, _corrupt string',
            map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false')
        ) as o,
        _metadata.file_name as file
    from text.`{{ env_var('PWD') }}/data/orders`
    {% if is_incremental() %}
    where _metadata.file_name > '{{ newest_file() }}'
    {% endif %}
),

typed as (
    select
        o.event_id,
        o.order_id,
        try_cast(o.version as int) as order_version,
        o.restaurant_id,
        o.customer_id,
        o.status,
        transform(
            o.items,
            item -> struct(
                item.dish_id as dish_id,
                try_cast(item.quantity as int) as quantity,
                try_cast(item.unit_price as decimal(10, 2)) as unit_price
            )
        ) as items,
        try_cast(o.ordered_at as timestamp) as ordered_at,
        file
    from lines
    where o is not null and o._corrupt is null
)

select
    event_id,
    order_id,
    order_version,
    restaurant_id,
    customer_id,
    status,
    aggregate(
        items,
        cast(0 as decimal(18, 2)),
        (total, item) -> cast(total + item.quantity * item.unit_price as decimal(18, 2))
    ) as order_total,
    items,
    cast(ordered_at as date) as ordered_date,
    ordered_at,
    file
from typed
where event_id is not null
    and length(order_id) > 0
    and order_version is not null
    and restaurant_id is not null
    and customer_id is not null
    and status in ('placed', 'updated', 'cancelled', 'delivered')
    and ordered_at between timestamp '2020-01-01' and timestamp '2050-01-01'
    and size(items) > 0
    and forall(items, item -> coalesce(item.dish_id is not null and item.quantity > 0 and item.unit_price >= 0, false))
