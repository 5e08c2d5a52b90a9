//! Memory and tables of a guest, and the memory of what was refused.
//!
//! A guest that is refused memory traps on its own with a bare `unreachable`; only the refusal
//! kept here tells that trap from any other.

use wasmtime::ResourceLimiter;
use wattle_run::limit;

/// Linear memories of one component: JavaScript needs 3, composed components a few more.
pub(crate) const MEMORIES: usize = 8;

/// Tables of one component: most core instances have one, JavaScript 3 and Python 16.
pub(crate) const TABLES: usize = 50;

/// What a guest wanted more of than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Bytes of linear memory.
    Memory,
    /// Elements of tables.
    Table,
}

/// The account of one guest's memories and tables, all taken together.
pub(crate) struct Meter {
    memory: Account,
    table: Account,
    refused: Option<Refused>,
}

/// Units in use and allowed. Growth that was granted and then failed in the engine stays counted:
/// that happens only when the host itself is out of memory.
struct Account {
    used: u64,
    allowed: u64,
}

impl Account {
    fn new(allowed: u64) -> Self {
        Self { used: 0, allowed }
    }

    /// Growth beyond the guest's own declared maximum is granted without being counted, since
    /// the engine refuses it.
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

impl Meter {
    /// An account over so many bytes of memory and the usual number of table elements.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        Self {
            memory: Account::new(memory_bytes),
            table: Account::new(limit::TABLE_ELEMENTS),
            refused: None,
        }
    }

    /// What was refused first, if anything was.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// How many units of something the guest may have.
    pub(crate) fn allowed(&self, refused: Refused) -> u64 {
        match refused {
            Refused::Memory => self.memory.allowed,
            Refused::Table => self.table.allowed,
        }
    }

    fn note(&mut self, granted: bool, what: Refused) -> bool {
        if !granted {
            self.refused.get_or_insert(what);
        }
        granted
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = self.memory.grow(current, desired, maximum);
        Ok(self.note(granted, Refused::Memory))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = self.table.grow(current, desired, maximum);
        Ok(self.note(granted, Refused::Table))
    }

    fn instances(&self) -> usize {
        limit::CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_share_one_account() {
        let mut meter = Meter::new(100);
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(!meter.memory_growing(0, 60, None).unwrap());
        assert_eq!(meter.refused(), Some(Refused::Memory));
        assert!(meter.memory_growing(60, 100, None).unwrap());
    }

    #[test]
    fn growth_beyond_the_own_maximum_is_left_to_the_engine() {
        let mut meter = Meter::new(100);
        assert!(meter.memory_growing(0, 90, Some(80)).unwrap());
        assert!(meter.memory_growing(0, 100, None).unwrap());
        assert_eq!(meter.refused(), None);
    }
}
