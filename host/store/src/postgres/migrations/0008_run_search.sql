-- Searches of the runs of all threads, newest request first, each with its thread. Only indexes are
-- added, so that hosts of the version before may run meanwhile.
CREATE INDEX runs_by_place ON runs (place);
CREATE INDEX threads_by_number ON threads (number);
