-- The caller of a pending run. Hosts divide their places for runs between callers. A host of an
-- earlier version does not set it.
ALTER TABLE runs ADD COLUMN caller bytea;
