{{ config(materialized='view', at_worst='append') }}
select dish_id from {{ source('kitchen', 'dishes') }}
