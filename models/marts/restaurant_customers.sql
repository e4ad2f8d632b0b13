with orders as (
    select * from {{ ref('stg_orders') }}
    where not is_cancelled
),

orders_in_windows as (
    {{ rolling_windows('orders', 'ordered_at', ['restaurant_id', 'customer_id'], var('window_hours')) }}
)

select
    window_hours,
    restaurant_id,
    count(distinct customer_id) as n_customers
from orders_in_windows
group by window_hours, restaurant_id
