create table if not exists events (
    event_id varchar,
    order_id varchar,
    version integer,
    restaurant_id varchar,
    status varchar,
    ordered_at timestamp,
    slot_at timestamp,
    order_total decimal(18, 2),
    items struct(dish_id varchar, quantity integer, unit_price decimal(10, 2))[]
);
create table if not exists landed (file varchar);
create or replace table restaurants as from read_csv('seeds/restaurants.csv');
create or replace table dishes as from read_csv('seeds/dishes.csv');
