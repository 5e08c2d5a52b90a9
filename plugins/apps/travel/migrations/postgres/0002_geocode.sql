-- What the geocoder answered, and when it may be asked again. Both belong to all tenants: places
-- are nobody's secret, and the geocoder counts requests of the whole host.

CREATE TABLE geocode_cache (
    query TEXT NOT NULL PRIMARY KEY,
    lat DOUBLE PRECISION,
    lng DOUBLE PRECISION,
    found BOOLEAN NOT NULL,
    fetched_ms BIGINT NOT NULL,
    CHECK (NOT found OR (lat IS NOT NULL AND lng IS NOT NULL))
);

-- One row: the time of the last request that was granted.
CREATE TABLE geocode_turn (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    at_ms BIGINT NOT NULL
);
