with orders as (
    select * from {{ ref('stg_orders') }}
)

select
    cast(ordered_at as date) as order_date,
    count(*) as n_orders,
    cast(sum(amount) as decimal(18, 2)) as sales
from orders
where status = 'paid'
group by order_date
