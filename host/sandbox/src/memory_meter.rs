//! Limits of a guest's memory and tables, and a record of denied growth.
//!
//! Growth counts twice: against the limit of the guest, and against the memory of all guests
//! together ([`crate::guest_pool`]). Values and texts that the host holds in memory for a call of
//! the guest count only against the memory of all guests. A guest that is denied memory traps with
//! `unreachable`. The recorded denial distinguishes that trap from others. The record also says
//! whether the same resource has grown since, which means that the guest continued with less memory
//! than it asked for.

use std::sync::Arc;

use wasmtime::ResourceLimiter;
use wattle_run::limit;

use crate::guest_pool::{GuestPool, PoolLease};

/// Maximum number of linear memories of one component. JavaScript needs 3, composed components a
/// few more.
pub(crate) const MAX_MEMORIES: usize = 8;

/// Maximum number of tables of one component. Most core instances have one. JavaScript components
/// have 3, Python components 16.
pub(crate) const MAX_TABLES: usize = 50;

/// Memory of one element of a table: a pointer.
const TABLE_ELEMENT_BYTES: u64 = size_of::<usize>() as u64;

/// Maximum memory of the tables of one guest, in bytes.
const MAX_TABLE_BYTES: u64 = limit::TABLE_ELEMENTS * TABLE_ELEMENT_BYTES;

/// A resource whose growth was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitedResource {
    /// Bytes of linear memory.
    Memory,
    /// Elements of tables.
    Table,
    /// Bytes of the memory of all guests.
    GuestsMemory,
}

impl LimitedResource {
    /// Returns the name of the limit in the details of failures.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Table => "table",
            Self::GuestsMemory => "guests_memory",
        }
    }
}

/// A growth that was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) resource: LimitedResource,
    /// True if the same resource has grown after the denial.
    pub(crate) grew_since: bool,
}

/// The usage of all memories and tables of one guest.
pub(crate) struct MemoryMeter {
    memory: Usage,
    table: Usage,
    /// Memory of the host for the values or the texts of a call, in bytes.
    values: u64,
    shared: Arc<PoolLease>,
}

/// Units in use and allowed. Growth that was granted and then failed in the engine stays counted.
/// Such a failure happens only if the host itself is out of memory.
struct Usage {
    used: u64,
    allowed: u64,
    denied: Option<Denial>,
}

impl Usage {
    fn new(allowed: u64) -> Self {
        Self { used: 0, allowed, denied: None }
    }

    /// Returns the usage after growth, or `None` if the growth is denied. Growth beyond the maximum
    /// that the guest itself declares is granted without being counted, since the engine rejects
    /// it.
    fn after(&self, current: usize, desired: usize, maximum: Option<usize>) -> Option<u64> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Some(self.used);
        }
        let used = self.used.saturating_add(desired.saturating_sub(current) as u64);
        (used <= self.allowed).then_some(used)
    }

    /// Records the usage after growth that was granted.
    fn grow_to(&mut self, used: u64) {
        if used > self.used {
            self.denied = self.denied.map(|denied| Denial { grew_since: true, ..denied });
        }
        self.used = used;
    }

    /// Records that growth was denied. Of several denials in a row, only the first is kept.
    fn deny(&mut self, resource: LimitedResource) -> bool {
        if self.denied.is_none_or(|denied| denied.grew_since) {
            self.denied = Some(Denial { resource, grew_since: false });
        }
        false
    }
}

/// Returns the memory limit of a guest, in bytes: `own_limit_bytes`, or the amount that the pool
/// can give to a single guest if that is less. A guest that needs more fails at its limit instead
/// of waiting for other guests.
pub(crate) fn allowed_memory(own_limit_bytes: u64, guests_memory: &GuestPool) -> u64 {
    own_limit_bytes.min(guests_memory.most_of_one_guest().saturating_sub(MAX_TABLE_BYTES))
}

impl MemoryMeter {
    /// Creates a meter for `memory_bytes` bytes of memory and the fixed number of table elements.
    /// Memory and tables also count against `shared`.
    pub(crate) fn new(memory_bytes: u64, shared: Arc<PoolLease>) -> Self {
        let (memory, table) = (Usage::new(memory_bytes), Usage::new(limit::TABLE_ELEMENTS));
        Self { memory, table, values: 0, shared }
    }

    /// Sets the memory that the values or the texts of a call take to `bytes`, in addition to
    /// memory and tables. Returns false, and changes nothing, if the memory of all guests does not
    /// suffice.
    pub(crate) fn hold_values(&mut self, bytes: u64) -> bool {
        let before = std::mem::replace(&mut self.values, bytes);
        let fits = self.share(self.memory.used, self.table.used);
        if !fits {
            self.values = before;
        }
        fits
    }

    /// Returns the memory of the values to the pool. The caller must have dropped the values.
    pub(crate) fn release_values(&mut self) {
        self.values = 0;
        self.shared.shrink_to(self.of_all(self.memory.used, self.table.used));
    }

    /// Returns the number of bytes that values or texts can take if no other guest exists.
    pub(crate) fn most_values_bytes(&self) -> u64 {
        let held = self.of_all(self.memory.used, self.table.used) - self.values;
        self.shared.pool().most_of_one().saturating_sub(held)
    }

    /// Returns the denial that most likely made the guest trap; `None` if nothing was denied.
    ///
    /// A denied resource that has not grown since takes precedence over one that has. Otherwise the
    /// denial of memory takes precedence over the denial of tables.
    pub(crate) fn denied(&self) -> Option<Denial> {
        // Of several maximums, `max_by_key` returns the last: the denial of memory.
        let denials = [self.table.denied, self.memory.denied].into_iter().flatten();
        denials.max_by_key(|denied| !denied.grew_since)
    }

    /// Returns the size of the linear memories of the guest in bytes. Memories never shrink.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.used
    }

    /// Returns the limit of a resource.
    pub(crate) fn allowed(&self, refused: LimitedResource) -> u64 {
        match refused {
            LimitedResource::Memory => self.memory.allowed,
            LimitedResource::Table => self.table.allowed,
            LimitedResource::GuestsMemory => self.shared.pool().total(),
        }
    }

    /// Takes this much memory and these tables from the memory of all guests. Returns false if that
    /// memory does not suffice.
    fn share(&self, memory_bytes: u64, table_elements: u64) -> bool {
        self.shared.grow_to(self.of_all(memory_bytes, table_elements))
    }

    /// Returns the number of bytes that a guest with this much memory and these tables takes from
    /// the memory of all guests.
    fn of_all(&self, memory_bytes: u64, table_elements: u64) -> u64 {
        let table_bytes = table_elements.saturating_mul(TABLE_ELEMENT_BYTES);
        memory_bytes.saturating_add(table_bytes).saturating_add(self.values)
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let Some(used) = self.memory.after(current, desired, maximum) else {
            return Ok(self.memory.deny(LimitedResource::Memory));
        };
        if !self.share(used, self.table.used) {
            return Ok(self.memory.deny(LimitedResource::GuestsMemory));
        }
        self.memory.grow_to(used);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let Some(used) = self.table.after(current, desired, maximum) else {
            return Ok(self.table.deny(LimitedResource::Table));
        };
        if !self.share(self.memory.used, used) {
            return Ok(self.table.deny(LimitedResource::GuestsMemory));
        }
        self.table.grow_to(used);
        Ok(true)
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
    use wattle_run::memory_budget::DEFAULT_BUDGET;

    use super::*;
    use crate::guest_pool::tests::memory_of;

    fn meter(memory_bytes: u64, of_all: u64) -> MemoryMeter {
        MemoryMeter::new(memory_bytes, memory_of(of_all))
    }

    fn denial(resource: LimitedResource, grew_since: bool) -> Denial {
        Denial { resource, grew_since }
    }

    #[test]
    fn memories_of_a_guest_share_one_limit() {
        let mut meter = meter(100, 1_000);
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(!meter.memory_growing(0, 60, None).unwrap());
        assert_eq!(meter.denied(), Some(denial(LimitedResource::Memory, false)));
        assert!(meter.memory_growing(60, 100, None).unwrap());
    }

    #[test]
    fn denial_records_that_the_same_resource_has_grown_since() {
        let mut meter = meter(100, 1_000);
        assert!(!meter.memory_growing(0, 101, None).unwrap());
        // Neither a growth by zero nor the growth of a table is a growth of the memory.
        assert!(meter.memory_growing(0, 0, None).unwrap());
        assert!(meter.table_growing(0, 1, None).unwrap());
        assert_eq!(meter.denied(), Some(denial(LimitedResource::Memory, false)));
        assert!(meter.memory_growing(0, 50, None).unwrap());
        assert_eq!(meter.denied(), Some(denial(LimitedResource::Memory, true)));
        let elements = usize::try_from(limit::TABLE_ELEMENTS).unwrap();
        assert!(!meter.table_growing(1, elements + 2, None).unwrap());
        assert_eq!(meter.denied(), Some(denial(LimitedResource::Table, false)));
        assert!(!meter.memory_growing(50, 101, None).unwrap());
        assert_eq!(meter.denied(), Some(denial(LimitedResource::Memory, false)));
    }

    #[test]
    fn growth_beyond_the_declared_maximum_is_left_to_the_engine() {
        let mut meter = meter(100, 1_000);
        assert!(meter.memory_growing(0, 90, Some(80)).unwrap());
        assert!(meter.memory_growing(0, 100, None).unwrap());
        assert_eq!(meter.denied(), None);
    }

    #[test]
    fn memories_and_tables_count_as_memory_of_all_guests() {
        let mut meter = meter(1_000, 400);
        assert!(meter.memory_growing(0, 120, None).unwrap());
        assert!(!meter.table_growing(0, 11, None).unwrap());
        assert_eq!(meter.denied(), Some(denial(LimitedResource::GuestsMemory, false)));
        assert_eq!(meter.allowed(LimitedResource::GuestsMemory), 400);
        assert!(meter.table_growing(0, 10, None).unwrap());
        assert!(!meter.memory_growing(120, 121, None).unwrap());
    }

    #[test]
    fn values_count_as_memory_of_all_guests_until_they_are_released() {
        let mut meter = meter(1_000, 400);
        assert!(meter.memory_growing(0, 120, None).unwrap());
        assert!(!meter.hold_values(81) && meter.hold_values(80));
        assert!(!meter.memory_growing(120, 121, None).unwrap());
        meter.release_values();
        assert!(meter.memory_growing(120, 200, None).unwrap());
        assert!(!meter.hold_values(1));
    }

    #[test]
    fn limit_of_a_guest_is_at_most_what_the_pool_can_give_to_one_guest() {
        let all = GuestPool::new(DEFAULT_BUDGET.guests_bytes);
        assert_eq!(allowed_memory(limit::MEMORY_BYTES, &all), limit::MEMORY_BYTES);
        let most = allowed_memory(u64::MAX, &all);
        assert!(most < all.most_of_one_guest() && most > all.most_of_one_guest() - (1 << 20));
    }
}
