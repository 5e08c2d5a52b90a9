-- What the geocoder answered, and when it may be asked again. Both belong to all tenants: places
-- are nobody's secret, and the geocoder counts requests of the whole host.

CREATE TABLE geocode_cache (
    query TEXT NOT NULL PRIMARY KEY,
    lat REAL,
    lng REAL,
    found INTEGER NOT NULL CHECK (found IN (0, 1)),
    fetched_ms INTEGER NOT NULL,
    CHECK (found = 0 OR (lat IS NOT NULL AND lng IS NOT NULL))
);

-- One row: the time of the last request that was granted.
CREATE TABLE geocode_turn (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    at_ms INTEGER NOT NULL
);
