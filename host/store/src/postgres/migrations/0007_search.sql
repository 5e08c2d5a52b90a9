-- Searches of the threads of a status or of a tenant, newest update first. Only indexes are added,
-- so that hosts of the version before may run meanwhile.
CREATE INDEX threads_by_status ON threads (status, updated_ms DESC, id) WHERE record IS NOT NULL;
CREATE INDEX threads_by_tenant ON threads (tenant, updated_ms DESC, id) WHERE record IS NOT NULL;
