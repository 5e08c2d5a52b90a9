-- Each host says how long it may be silent. Those of before say nothing and mean 15 seconds.
ALTER TABLE holders ADD COLUMN lease_ms bigint NOT NULL DEFAULT 15000;

-- Hosts that were heard of lately enough, and until when that is so. By the time of the statement:
-- what it sees of them is as old, also when it has waited for a lock.
CREATE VIEW living AS
    SELECT holder, beat + lease_ms * interval '1 millisecond' AS until FROM holders
    WHERE beat + lease_ms * interval '1 millisecond' > statement_timestamp();

-- Hosts look often whether one of these is nobody's.
CREATE INDEX threads_running ON threads (id) WHERE status = 'running';
