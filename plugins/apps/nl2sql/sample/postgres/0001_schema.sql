-- The sample database of nl2sql: a shop with two years of orders.
-- `is_deleted` is 1 for rows that the shop no longer counts.

CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    city TEXT NOT NULL,
    province TEXT NOT NULL,
    segment TEXT NOT NULL,
    email TEXT NOT NULL,
    phone TEXT,
    registered_at DATE NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    brand TEXT NOT NULL,
    unit_price NUMERIC(10, 2) NOT NULL,
    stock INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    order_no TEXT NOT NULL UNIQUE,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    status TEXT NOT NULL,
    channel TEXT NOT NULL,
    total_amount NUMERIC(12, 2) NOT NULL,
    ordered_at TIMESTAMP NOT NULL,
    shipped_at TIMESTAMP,
    is_deleted INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE order_items (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL,
    unit_price NUMERIC(10, 2) NOT NULL,
    amount NUMERIC(12, 2) NOT NULL
);

CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_time ON orders (ordered_at);
CREATE INDEX order_items_by_order ON order_items (order_id);
CREATE INDEX order_items_by_product ON order_items (product_id);
