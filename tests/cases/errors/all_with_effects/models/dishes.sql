select 1 as dish_id, cast(9.5 as decimal(10, 2)) as price
