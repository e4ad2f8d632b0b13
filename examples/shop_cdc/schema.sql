-- The tables of the ordering platform, in Postgres with wal_level = logical.
create table customers (
    customer_id text primary key,
    city text not null
);

create table orders (
    order_id text primary key,
    restaurant_id text not null,
    customer_id text not null references customers,
    status text not null,
    version int not null,
    total numeric(18, 2) not null,
    ordered_at timestamptz not null
);

create table order_items (
    order_id text not null references orders on delete cascade,
    line int not null,
    dish_id text not null,
    quantity int not null,
    unit_price numeric(10, 2) not null,
    primary key (order_id, line)
);
