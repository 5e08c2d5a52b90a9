//! Limits of a guest's memory and tables, and a record of denied growth.
//!
//! A guest that is denied memory traps with `unreachable`. The recorded denial distinguishes that
//! trap from others.

use wasmtime::ResourceLimiter;
use wattle_run::limit;

/// Maximum number of linear memories of one component. JavaScript needs 3, composed components a
/// few more.
pub(crate) const MAX_MEMORIES: usize = 8;

/// Maximum number of tables of one component. Most core instances have one, JavaScript 3 and Python
/// 16.
pub(crate) const MAX_TABLES: usize = 50;

/// A resource whose growth was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitedResource {
    /// Bytes of linear memory.
    Memory,
    /// Elements of tables.
    Table,
}

/// The usage of all memories and tables of one guest.
pub(crate) struct MemoryMeter {
    memory: Usage,
    table: Usage,
    denied: Option<LimitedResource>,
}

/// Units in use and allowed. Growth that was granted and then failed in the engine stays counted.
/// That happens only if the host itself is out of memory.
struct Usage {
    used: u64,
    allowed: u64,
}

impl Usage {
    fn new(allowed: u64) -> Self {
        Self { used: 0, allowed }
    }

    /// Returns true if growth is granted, and counts it. Growth beyond the maximum that the guest
    /// itself declares is granted without being counted, since the engine rejects it.
    fn grow(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> bool {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return true;
        }
        let used = self.used.saturating_add(desired.saturating_sub(current) as u64);
        if used > self.allowed {
            return false;
        }
        self.used = used;
        true
    }
}

impl MemoryMeter {
    /// Creates a meter for `memory_bytes` bytes of memory and the fixed number of table elements.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        Self {
            memory: Usage::new(memory_bytes),
            table: Usage::new(limit::TABLE_ELEMENTS),
            denied: None,
        }
    }

    /// Returns the resource that was denied first, if any was.
    pub(crate) fn denied(&self) -> Option<LimitedResource> {
        self.denied
    }

    /// Returns the limit of a resource.
    pub(crate) fn allowed(&self, refused: LimitedResource) -> u64 {
        match refused {
            LimitedResource::Memory => self.memory.allowed,
            LimitedResource::Table => self.table.allowed,
        }
    }

    fn record_denied(&mut self, granted: bool, what: LimitedResource) -> bool {
        if !granted {
            self.denied.get_or_insert(what);
        }
        granted
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = self.memory.grow(current, desired, maximum);
        Ok(self.record_denied(granted, LimitedResource::Memory))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = self.table.grow(current, desired, maximum);
        Ok(self.record_denied(granted, LimitedResource::Table))
    }

    fn instances(&self) -> usize {
        limit::CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_share_one_limit() {
        let mut meter = MemoryMeter::new(100);
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(!meter.memory_growing(0, 60, None).unwrap());
        assert_eq!(meter.denied(), Some(LimitedResource::Memory));
        assert!(meter.memory_growing(60, 100, None).unwrap());
    }

    #[test]
    fn growth_beyond_the_declared_maximum_is_left_to_the_engine() {
        let mut meter = MemoryMeter::new(100);
        assert!(meter.memory_growing(0, 90, Some(80)).unwrap());
        assert!(meter.memory_growing(0, 100, None).unwrap());
        assert_eq!(meter.denied(), None);
    }
}
