{{ config(materialized='table') }}

select _c0 as restaurant_id, _c1 as restaurant_name, _c2 as city
from csv.`{{ env_var('PWD') }}/seeds/restaurants.csv`
where _c0 <> 'restaurant_id'
