MODEL (
    name bench.dishes,
    kind SEED (path '$root/seeds/dishes.csv'),
    columns (dish_id varchar, dish_name varchar, category varchar),
    grain dish_id
);
