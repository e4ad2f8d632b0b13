MODEL (
    name bench.restaurants,
    kind SEED (path '$root/seeds/restaurants.csv'),
    columns (restaurant_id varchar, restaurant_name varchar, city varchar, currency varchar, time_zone varchar),
    grain restaurant_id
);
