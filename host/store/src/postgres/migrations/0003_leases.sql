-- Lease duration of each host. Hosts of earlier versions do not set the column and use 15 seconds.
ALTER TABLE holders ADD COLUMN lease_ms bigint NOT NULL DEFAULT 15000;

-- Live hosts, and when their leases expire. The view compares with the start of the statement,
-- because the statement sees the heartbeats as of that time, even after it has waited for a lock.
CREATE VIEW living AS
    SELECT holder, beat + lease_ms * interval '1 millisecond' AS until FROM holders
    WHERE beat + lease_ms * interval '1 millisecond' > statement_timestamp();

-- Hosts often search for running threads that no live host has leased.
CREATE INDEX threads_running ON threads (id) WHERE status = 'running';
