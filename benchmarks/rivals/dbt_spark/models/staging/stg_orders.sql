{{ config(
    unique_key='order_id',
    incremental_strategy='merge',
    partition_by='ordered_date',
    incremental_predicates=["DBT_INTERNAL_DEST.ordered_date >= date '" ~ var('as_of')[:10] ~ "' - interval 8 days"]
) }}

with events as (
    select * from {{ ref('stg_order_events') }}
    {% if is_incremental() %}
    where file > '{{ newest_file() }}' and ordered_date >= date '{{ var("as_of")[:10] }}' - interval 8 days
    {% endif %}
),

ranked as (
    select *, row_number() over (partition by order_id order by order_version desc, event_id desc) as place
    from events
),

newest as (
    select * from ranked where place = 1
)

select
    newest.order_id,
    newest.event_id,
    newest.order_version,
    newest.restaurant_id,
    newest.status,
    newest.order_total,
    newest.items,
    newest.ordered_date,
    newest.ordered_at,
    newest.file
from newest
{% if is_incremental() %}
-- A version that comes late must not take the place of a newer one.
left join {{ this }} as known
    on newest.order_id = known.order_id
    and known.ordered_date >= date '{{ var("as_of")[:10] }}' - interval 8 days
where known.order_id is null
    or newest.order_version > known.order_version
    or (newest.order_version = known.order_version and newest.event_id > known.event_id)
{% endif %}
