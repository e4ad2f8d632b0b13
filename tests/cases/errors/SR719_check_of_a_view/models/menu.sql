{{ config(materialized='view') }}
select dish_id, price from {{ ref('dishes') }}
