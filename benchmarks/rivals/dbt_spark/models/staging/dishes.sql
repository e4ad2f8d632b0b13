{{ config(materialized='table') }}

select _c0 as dish_id, _c1 as dish_name, _c2 as category
from csv.`{{ env_var('PWD') }}/seeds/dishes.csv`
where _c0 <> 'dish_id'
