"""A dbt project in the shape of larger examples: a tea house with sources over seeds, packages and a semantic layer."""

from __future__ import annotations

from pathlib import Path

from tests.support import broken

STAGED = """
with

source as (

    select * from {{{{ source('shop', '{table}') }}}}

),

renamed as (

    select
{columns}
    from source

)

select * from renamed
"""


def staged(table: str, *columns: str) -> str:
    """Return a staging model over a source."""
    return STAGED.format(table=table, columns=",\n".join(f"        {column}" for column in columns))


def copied(name: str) -> str:
    """Return a mart that is its staging model."""
    return f"with\n\n{name} as (\n\n    select * from {{{{ ref('stg_{name}') }}}}\n\n)\n\nselect * from {name}\n"


FILES = {
    "dbt_project.yml": """
config-version: 2

name: "teahouse"
version: "3.0.0"
require-dbt-version: ">=1.5.0"

profile: default

model-paths: ["models"]
analysis-paths: ["analyses"]
test-paths: ["data-tests"]
seed-paths: ["seeds"]
macro-paths: ["macros"]
snapshot-paths: ["snapshots"]

target-path: "target"
clean-targets:
  - "target"
  - "dbt_packages"

vars:
  "dbt_date:time_zone": "Europe/Lisbon"

seeds:
  teahouse:
    +schema: raw
    shop-data:
      +enabled: "{{ var('load_source_data', false) }}"

models:
  teahouse:
    staging:
      +materialized: view
    marts:
      +materialized: table
""",
    "profiles.yml": """
default:
  target: dev
  outputs:
    dev: {type: duckdb, path: shop.duckdb, threads: 3}
""",
    "packages.yml": """
packages:
  - package: dbt-labs/dbt_utils
    version: 1.3.0
  - package: godatadriven/dbt_date
    version: 0.11.0
""",
    "README.md": "# The tea house\n",
    "analyses/best_days.sql": "select ordered_at, count(*) as n_orders from {{ ref('orders') }} group by 1\n",
    "seeds/shop-data/raw_customers.csv": "id,name\nc1,Ann\nc2,Cem\nc3,Eva\n",
    "seeds/shop-data/raw_stores.csv": (
        "id,name,opened_at,tax_rate\ns1,Harbour,2026-01-01T09:30:00,0.06\ns2,Station,2026-02-01T08:00:00,0.04\n"
    ),
    "seeds/shop-data/raw_orders.csv": (
        "id,customer,ordered_at,store_id,subtotal,tax_paid,order_total\n"
        "o1,c1,2026-03-01T10:05:00,s1,1100,66,1166\n"
        "o2,c2,2026-03-01T11:00:00,s1,400,24,424\n"
        "o3,c1,2026-03-02T09:15:00,s2,1500,60,1560\n"
    ),
    "seeds/shop-data/raw_items.csv": (
        "id,order_id,sku\ni1,o1,TEA-001\ni2,o1,BUN-001\ni3,o2,TEA-001\ni4,o3,BUN-001\ni5,o3,BUN-001\ni6,o3,TEA-002\n"
    ),
    "seeds/shop-data/raw_products.csv": (
        "sku,name,type,price,description\nTEA-001,green tea,beverage,400,hot\nTEA-002,iced tea,beverage,100,cold\n"
        "BUN-001,sesame bun,bun,700,baked\n"
    ),
    "seeds/shop-data/raw_supplies.csv": (
        "id,name,cost,perishable,sku\np1,leaves,25,true,TEA-001\np2,cup,6,false,TEA-001\np2,cup,6,false,TEA-002\n"
        "p3,flour,31,true,BUN-001\n"
    ),
    "macros/cents_to_dollars.sql": """
{# One place that says how an amount is stored #}

{% macro cents_to_dollars(column_name) -%}
    {{ return(adapter.dispatch('cents_to_dollars')(column_name)) }}
{%- endmacro %}

{% macro default__cents_to_dollars(column_name) -%}
    ({{ column_name }} / 100)::numeric(16, 2)
{%- endmacro %}

{% macro postgres__cents_to_dollars(column_name) -%}
    ({{ column_name }}::numeric(16, 2) / 100)
{%- endmacro %}

{% macro bigquery__cents_to_dollars(column_name) %}
    round(cast(({{ column_name }} / 100) as numeric), 2)
{% endmacro %}
""",
    "macros/generate_schema_name.sql": """
{% macro generate_schema_name(custom_schema_name, node) %}

    {% set default_schema = target.schema %}

    {% if node.resource_type == 'seed' %}
        {{ custom_schema_name | trim }}
    {% elif target.name == 'prod' %}
        {{ custom_schema_name | trim if custom_schema_name else default_schema }}
    {% else %}
        {{ default_schema }}
    {% endif %}

{% endmacro %}
""",
    "models/staging/__sources.yml": """
version: 2

sources:
  - name: shop
    schema: raw
    description: The till of the tea house
    tables:
      - name: raw_customers
        description: One row for each person who ever ordered
      - name: raw_orders
        description: One row for each order
        loaded_at_field: ordered_at
      - name: raw_items
        description: Items of the orders
      - name: raw_stores
        loaded_at_field: opened_at
      - name: raw_products
      - name: raw_supplies
""",
    "models/staging/stg_customers.sql": staged(
        "raw_customers", "----------  ids\n        id as customer_id", "name as customer_name"
    ),
    "models/staging/stg_locations.sql": staged(
        "raw_stores",
        "id as location_id",
        "name as location_name",
        "tax_rate",
        "{{ dbt.date_trunc('day', 'opened_at') }} as opened_date",
    ),
    "models/staging/stg_order_items.sql": staged("raw_items", "id as order_item_id", "order_id", "sku as product_id"),
    "models/staging/stg_orders.sql": staged(
        "raw_orders",
        "id as order_id",
        "store_id as location_id",
        "customer as customer_id",
        "subtotal as subtotal_cents",
        "tax_paid as tax_paid_cents",
        "order_total as order_total_cents",
        "{{ cents_to_dollars('subtotal') }} as subtotal",
        "{{ cents_to_dollars('tax_paid') }} as tax_paid",
        "{{ cents_to_dollars('order_total') }} as order_total",
        "{{ dbt.date_trunc('day','ordered_at') }} as ordered_at",
    ),
    "models/staging/stg_products.sql": staged(
        "raw_products",
        "sku as product_id",
        "name as product_name",
        "type as product_type",
        "description as product_description",
        "{{ cents_to_dollars('price') }} as product_price",
        "coalesce(type = 'bun', false) as is_food_item",
        "coalesce(type = 'beverage', false) as is_drink_item",
    ),
    "models/staging/stg_supplies.sql": staged(
        "raw_supplies",
        "{{ dbt_utils.generate_surrogate_key(['id', 'sku']) }} as supply_uuid",
        "id as supply_id",
        "sku as product_id",
        "name as supply_name",
        "{{ cents_to_dollars('cost') }} as supply_cost",
        "perishable as is_perishable_supply",
    ),
    "models/staging/stg_customers.yml": """
models:
  - name: stg_customers
    description: Customers with basic cleaning, one row for each customer.
    columns:
      - name: customer_id
        description: The unique key of a customer.
        data_tests:
          - not_null
          - unique
""",
    "models/staging/stg_locations.yml": """
models:
  - name: stg_locations
    description: Houses with basic cleaning, one row for each house.
    columns:
      - name: location_id
        description: The unique key of a house.
        data_tests:
          - not_null
          - unique

unit_tests:
  - name: test_does_opened_date_trunc_to_date
    description: A day has no time.
    model: stg_locations
    given:
      - input: source('shop', 'raw_stores')
        rows:
          - {id: 1, name: "Harbour", tax_rate: 0.2, opened_at: "2016-09-01T00:00:00"}
          - {id: 2, name: "Station", tax_rate: 0.1, opened_at: "2079-10-27T23:59:59.9999"}
    expect:
      rows:
        - {location_id: 1, location_name: "Harbour", tax_rate: 0.2, opened_date: "2016-09-01"}
        - {location_id: 2, location_name: "Station", tax_rate: 0.1, opened_date: "2079-10-27"}
""",
    "models/staging/stg_order_items.yml": """
models:
  - name: stg_order_items
    description: Items of an order.
    columns:
      - name: order_item_id
        data_tests:
          - not_null
          - unique
      - name: order_id
        data_tests:
          - not_null
          - relationships:
              to: ref('stg_orders')
              field: order_id
""",
    "models/staging/stg_orders.yml": """
models:
  - name: stg_orders
    description: Orders with basic cleaning, one row for each order.
    data_tests:
      - dbt_utils.expression_is_true:
          expression: "order_total - tax_paid = subtotal"
    columns:
      - name: order_id
        description: The unique key of an order.
        data_tests:
          - not_null
          - unique
""",
    "models/staging/stg_products.yml": """
models:
  - name: stg_products
    columns:
      - name: product_id
        data_tests:
          - not_null
          - unique
""",
    "models/staging/stg_supplies.yml": """
models:
  - name: stg_supplies
    description: What a product costs, one row for each supply and product.
    columns:
      - name: supply_uuid
        description: The unique key of a supply for a product.
        data_tests:
          - not_null
          - unique
""",
    "models/marts/customers.sql": """
with

customers as (

    select * from {{ ref('stg_customers') }}

),

orders as (

    select * from {{ ref('orders') }}

),

customer_orders_summary as (

    select
        orders.customer_id,

        count(distinct orders.order_id) as count_lifetime_orders,
        count(distinct orders.order_id) > 1 as is_repeat_buyer,
        min(orders.ordered_at) as first_ordered_at,
        max(orders.ordered_at) as last_ordered_at,
        sum(orders.subtotal) as lifetime_spend_pretax,
        sum(orders.tax_paid) as lifetime_tax_paid,
        sum(orders.order_total) as lifetime_spend

    from orders

    group by 1

),

joined as (

    select
        customers.*,

        customer_orders_summary.count_lifetime_orders,
        customer_orders_summary.first_ordered_at,
        customer_orders_summary.last_ordered_at,
        customer_orders_summary.lifetime_spend_pretax,
        customer_orders_summary.lifetime_tax_paid,
        customer_orders_summary.lifetime_spend,

        case
            when customer_orders_summary.is_repeat_buyer then 'returning'
            else 'new'
        end as customer_type

    from customers

    left join customer_orders_summary
        on customers.customer_id = customer_orders_summary.customer_id

)

select * from joined
""",
    "models/marts/customers.yml": """
models:
  - name: customers
    description: Customers with their orders, one row for each customer.
    data_tests:
      - dbt_utils.expression_is_true:
          expression: "lifetime_spend_pretax + lifetime_tax_paid = lifetime_spend"
    columns:
      - name: customer_id
        description: The unique key of a customer.
        data_tests:
          - not_null
          - unique
      - name: customer_name
        description: Full name
      - name: count_lifetime_orders
        description: Number of orders so far
      - name: customer_type
        description: Whether the customer ordered more than once.
        data_tests:
          - accepted_values:
              values: ["new", "returning"]

semantic_models:
  - name: customers
    defaults:
      agg_time_dimension: first_ordered_at
    model: ref('customers')
    entities:
      - name: customer
        expr: customer_id
        type: primary
    dimensions:
      - {name: first_ordered_at, type: time, type_params: {time_granularity: day}}
    measures:
      - name: lifetime_spend_pretax
        agg: sum

metrics:
  - name: lifetime_spend_pretax
    label: LTV
    type: simple
    type_params:
      measure: lifetime_spend_pretax

saved_queries:
  - name: customer_order_metrics
    query_params:
      metrics: [lifetime_spend_pretax]
""",
    "models/marts/locations.sql": """
with

locations as (

    select * from {{ ref('stg_locations') }}

)

select * from locations
""",
    "models/marts/locations.yml": """
models:
  - name: locations
    description: Houses, one row for each house.

semantic_models:
  - name: locations
    model: ref('locations')
    entities: [{name: location, type: primary, expr: location_id}]
""",
    "models/marts/metricflow_time_spine.sql": """
-- metricflow_time_spine.sql
with

days as (

    {{ dbt_date.get_base_dates(n_dateparts=365*10, datepart="day") }}

),

cast_to_date as (

    select cast(date_day as date) as date_day

    from days

)

select * from cast_to_date
""",
    "models/marts/order_items.sql": """
with

order_items as (

    select * from {{ ref('stg_order_items') }}

),

orders as (

    select * from {{ ref('stg_orders') }}

),

products as (

    select * from {{ ref('stg_products') }}

),

supplies as (

    select * from {{ ref('stg_supplies') }}

),

order_supplies_summary as (

    select
        product_id,

        sum(supply_cost) as supply_cost

    from supplies

    group by 1

),

joined as (

    select
        order_items.*,

        orders.ordered_at,

        products.product_name,
        products.product_price,
        products.is_food_item,
        products.is_drink_item,

        order_supplies_summary.supply_cost

    from order_items

    left join orders on order_items.order_id = orders.order_id

    left join products on order_items.product_id = products.product_id

    left join order_supplies_summary
        on order_items.product_id = order_supplies_summary.product_id

)

select * from joined
""",
    "models/marts/order_items.yml": """
models:
  - name: order_items
    columns:
      - name: order_item_id
        data_tests:
          - not_null
          - unique
      - name: order_id
        data_tests:
          - relationships:
              to: ref('orders')
              field: order_id

unit_tests:
  - name: test_supply_costs_sum_correctly
    description: The costs of all supplies of a product are added.
    model: order_items
    given:
      - input: ref('stg_supplies')
        rows:
          - {product_id: 1, supply_cost: 4.50}
          - {product_id: 2, supply_cost: 3.50}
          - {product_id: 2, supply_cost: 5.00}
      - input: ref('stg_products')
        rows:
          - {product_id: 1}
          - {product_id: 2}
      - input: ref('stg_order_items')
        rows:
          - {order_id: 1, product_id: 1}
          - {order_id: 2, product_id: 2}
          - {order_id: 2, product_id: 2}
      - input: ref('stg_orders')
        rows:
          - {order_id: 1}
          - {order_id: 2}
    expect:
      rows:
        - {order_id: 1, product_id: 1, supply_cost: 4.50}
        - {order_id: 2, product_id: 2, supply_cost: 8.50}
        - {order_id: 2, product_id: 2, supply_cost: 8.50}

semantic_models:
  - name: order_item
    model: ref('order_items')
    defaults: {agg_time_dimension: ordered_at}
    entities: [{name: order_item, type: primary, expr: order_item_id}]
    dimensions:
      - {name: ordered_at, type: time, type_params: {time_granularity: day}}
    measures:
      - {name: revenue, agg: sum, expr: product_price}

metrics:
  - name: revenue
    label: Revenue
    type: simple
    type_params: {measure: revenue}

saved_queries:
  - name: revenue_metrics
    query_params: {metrics: [revenue]}
""",
    "models/marts/orders.sql": """
with

orders as (

    select * from {{ ref('stg_orders') }}

),

order_items as (

    select * from {{ ref('order_items') }}

),

order_items_summary as (

    select
        order_id,

        sum(supply_cost) as order_cost,
        sum(product_price) as order_items_subtotal,
        count(order_item_id) as count_order_items,
        sum(
            case
                when is_food_item then 1
                else 0
            end
        ) as count_food_items,
        sum(
            case
                when is_drink_item then 1
                else 0
            end
        ) as count_drink_items

    from order_items

    group by 1

),

compute_booleans as (

    select
        orders.*,

        order_items_summary.order_cost,
        order_items_summary.order_items_subtotal,
        order_items_summary.count_food_items,
        order_items_summary.count_drink_items,
        order_items_summary.count_order_items,
        order_items_summary.count_food_items > 0 as is_food_order,
        order_items_summary.count_drink_items > 0 as is_drink_order

    from orders

    left join
        order_items_summary
        on orders.order_id = order_items_summary.order_id

),

customer_order_count as (

    select
        *,

        row_number() over (
            partition by customer_id
            order by ordered_at asc
        ) as customer_order_number

    from compute_booleans

)

select * from customer_order_count
""",
    "models/marts/orders.yml": """
models:
  - name: orders
    description: Orders with what was in them, one row for each order.
    data_tests:
      - dbt_utils.expression_is_true:
          expression: "order_items_subtotal = subtotal"
      - dbt_utils.expression_is_true:
          expression: "order_total = subtotal + tax_paid"
    columns:
      - name: order_id
        description: The unique key of an order.
        data_tests:
          - not_null
          - unique
      - name: customer_id
        description: The customer of the order.
        data_tests:
          - relationships:
              to: ref('stg_customers')
              field: customer_id

unit_tests:
  - name: test_order_items_compute_to_bools_correctly
    description: Counts become booleans.
    model: orders
    given:
      - input: ref('order_items')
        rows:
          - {order_id: 1, order_item_id: 1, is_drink_item: false, is_food_item: true}
          - {order_id: 1, order_item_id: 2, is_drink_item: true, is_food_item: false}
          - {order_id: 2, order_item_id: 3, is_drink_item: false, is_food_item: true}
      - input: ref('stg_orders')
        rows:
          - {order_id: 1}
          - {order_id: 2}
    expect:
      rows:
        - {order_id: 1, count_food_items: 1, count_drink_items: 1, is_drink_order: true, is_food_order: true}
        - {order_id: 2, count_food_items: 1, count_drink_items: 0, is_drink_order: false, is_food_order: true}

semantic_models:
  - name: orders
    model: ref('orders')
    defaults: {agg_time_dimension: ordered_at}
    entities: [{name: order_id, type: primary}]
    dimensions:
      - {name: ordered_at, type: time, type_params: {time_granularity: day}}
    measures:
      - {name: order_total, agg: sum}

metrics:
  - name: order_total
    type: simple
    label: Order Total
    type_params: {measure: order_total}
""",
    "models/marts/products.sql": copied("products"),
    "models/marts/products.yml": "models:\n  - name: products\n    description: Products, one row for each.\n",
    "models/marts/supplies.sql": copied("supplies"),
    "models/marts/supplies.yml": "models:\n  - name: supplies\n    description: Supplies, one row for each product.\n",
}


def write(folder: Path, changed: dict[str, str] | None = None) -> Path:
    """Write the project; `changed` replaces files, or adds some."""
    broken.write(folder, {"pyproject.toml": "", **FILES, **(changed or {})})
    (folder / "pyproject.toml").unlink()
    return folder
