create table if not exists orders (
    order_id varchar,
    event_id varchar,
    version integer,
    restaurant_id varchar,
    is_cancelled boolean,
    slot_at timestamp,
    order_total decimal(18, 2),
    items struct(dish_id varchar, quantity integer, unit_price decimal(10, 2))[]
);
create table if not exists restaurant_slots (
    slot_at timestamp, restaurant_id varchar, n_orders bigint, total_sales decimal(18, 2)
);
create table if not exists dish_slots (slot_at timestamp, restaurant_id varchar, dish_id varchar, quantity bigint);
create table if not exists restaurant_hours (
    hour_at timestamp, restaurant_id varchar, n_orders bigint, total_sales decimal(18, 2)
);
create table if not exists landed (file varchar);
create or replace table restaurants as from read_csv('seeds/restaurants.csv');
create or replace table dishes as from read_csv('seeds/dishes.csv');
