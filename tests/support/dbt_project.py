"""A dbt project in the shape that tutorials have: a bakery, whose seeds are customers, orders and payments."""

from __future__ import annotations

from pathlib import Path

from tests.support import broken

FILES = {
    "dbt_project.yml": """
name: 'bakery'
version: '1.0'
profile: 'bakery'
model-paths: ["models"]
seed-paths: ["seeds"]
test-paths: ["tests"]
macro-paths: ["macros"]
target-path: "target"
vars:
  bakery:
    closed: [1, 2]
models:
  bakery:
    +materialized: table
    staging:
      +materialized: view
""",
    "README.md": "# The bakery\n",
    "seeds/raw_customers.csv": "id,first_name,last_name\n1,Ann,B.\n2,Cem,D.\n3,Eva,F.\n",
    "seeds/raw_orders.csv": (
        "id,user_id,order_date,status\n1,1,2026-01-01,returned\n2,3,2026-01-02,completed\n3,1,2026-01-04,placed\n"
    ),
    "seeds/raw_payments.csv": (
        "id,order_id,payment_method,amount\n1,1,credit_card,1000\n2,2,coupon,2050\n3,3,credit_card,100\n4,3,coupon,5\n"
    ),
    "models/docs.md": """
{% docs order_status %}

One of `placed`, `completed` and `returned`.

{% enddocs %}
""",
    "models/staging/stg_customers.sql": """
with source as (
    {#- The seed has what a source would have -#}
    select * from {{ ref('raw_customers') }}
),
renamed as (
    select id as customer_id, first_name, last_name from source
)
select * from renamed
""",
    "models/staging/stg_orders.sql": """
select id as order_id, user_id as customer_id, order_date, status from {{ ref('raw_orders') }}
""",
    "models/staging/stg_payments.sql": """
select id as payment_id, order_id, payment_method, {{ cents_to_euros('amount') }} as amount
from {{ ref('raw_payments') }}
""",
    "models/staging/schema.yml": """
version: 2

models:
  - name: stg_customers
    columns:
      - name: customer_id
        tests:
          - unique
          - not_null

  - name: stg_orders
    columns:
      - name: order_id
        tests: [unique, not_null]
      - name: status
        tests:
          - accepted_values:
              values: ['placed', 'completed', 'returned']

  - name: stg_payments
    columns:
      - name: payment_id
        tests: [unique, not_null]
""",
    "models/customers.sql": """
with customers as (
    select * from {{ ref('stg_customers') }}
),
orders as (
    select * from {{ ref('stg_orders') }}
),
customer_orders as (
    select customer_id, min(order_date) as first_order, count(order_id) as number_of_orders
    from orders
    group by customer_id
)
select customers.customer_id, customers.first_name, customer_orders.first_order, customer_orders.number_of_orders
from customers
left join customer_orders on customers.customer_id = customer_orders.customer_id
""",
    "models/orders.sql": """
{% set payment_methods = ['credit_card', 'coupon'] %}

with orders as (
    select * from {{ ref('stg_orders') }}
),
order_payments as (
    select
        order_id,
        {% for payment_method in payment_methods -%}
        sum(case when payment_method = '{{ payment_method }}' then amount else 0 end) as {{ payment_method }}_amount,
        {% endfor -%}
        sum(amount) as total_amount
    from {{ ref('stg_payments') }}
    group by order_id
)
select
    orders.order_id,
    orders.customer_id,
    orders.status,
    {% for payment_method in payment_methods -%}
    order_payments.{{ payment_method }}_amount,
    {% endfor -%}
    order_payments.total_amount as amount
from orders
left join order_payments on orders.order_id = order_payments.order_id
""",
    "models/schema.yml": """
version: 2

models:
  - name: customers
    description: One row for each customer.
    meta: {owner: nobody}
    latest_version: 1
    columns:
      - name: customer_id
        description: Primary key
        tests:
          - unique
          - not_null

  - name: orders
    description: One row for each order.
    columns:
      - name: order_id
        tests:
          - unique
          - not_null
      - name: customer_id
        description: Foreign key to the customers table
        tests:
          - not_null
          - relationships:
              to: ref('customers')
              field: customer_id
      - name: status
        description: '{{ doc("order_status") }}'
      - name: amount
        tests: [not_null]
""",
    "macros/money.sql": """
{% macro cents_to_euros(column) -%}
cast({{ column }} / 100.0 as decimal(16, 2))
{%- endmacro %}

{% macro generate_schema_name(custom_schema_name, node) -%}
{{ custom_schema_name }}
{%- endmacro %}
""",
    "tests/no_negative_amounts.sql": "select order_id, amount from {{ ref('orders') }} where amount < 0\n",
}


def write(folder: Path, changed: dict[str, str] | None = None) -> Path:
    """Write the project; `changed` replaces files, or adds some."""
    broken.write(folder, {"pyproject.toml": "", **FILES, **(changed or {})})
    (folder / "pyproject.toml").unlink()
    return folder
