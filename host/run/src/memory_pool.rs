//! A limited amount of memory for values of one kind, such as the pages of all tails.
//!
//! Callers have no shares of it. [`crate::fair_share`] divides a resource between callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limited amount of memory. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    max_bytes: u64,
    used: Arc<AtomicU64>,
}

/// Memory of a pool that a value occupies. It returns to the pool on drop.
#[must_use]
#[derive(Debug)]
pub struct Occupied {
    pool: MemoryPool,
    bytes: u64,
}

/// The error of a reservation that exceeds the limit of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFull {
    /// Bytes that other values occupy.
    pub used: u64,
    /// Limit of the pool in bytes.
    pub max_bytes: u64,
}

impl MemoryPool {
    /// Creates a pool of `max_bytes` bytes.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self { max_bytes, used: Arc::default() }
    }

    /// Reserves memory for a value before it is read.
    ///
    /// # Errors
    ///
    /// [`PoolFull`] if the pool has less free memory.
    pub fn reserve(&self, bytes: u64) -> Result<Occupied, PoolFull> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.max_bytes);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Occupied { pool: self.clone(), bytes }),
            Err(used) => Err(PoolFull { used, max_bytes: self.max_bytes }),
        }
    }

    /// Counts the memory of a value that exists, also beyond the limit. Later reservations find
    /// less free memory.
    pub fn count(&self, bytes: u64) -> Occupied {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Occupied { pool: self.clone(), bytes }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_can_be_reserved_until_the_pool_is_full() {
        let pool = MemoryPool::new(100);
        let first = pool.reserve(60).unwrap();
        let second = pool.reserve(40).unwrap();
        let full = PoolFull { used: 100, max_bytes: 100 };
        assert_eq!(pool.reserve(1).unwrap_err(), full);
        drop(first);
        assert!(pool.reserve(61).is_err() && pool.reserve(u64::MAX).is_err());
        assert!(pool.reserve(60).is_ok());
        drop(second);
        assert_eq!(pool.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn memory_beyond_the_limit_counts_as_well() {
        let pool = MemoryPool::new(100);
        let large = pool.count(150);
        assert_eq!(pool.reserve(1).unwrap_err(), PoolFull { used: 150, max_bytes: 100 });
        drop(large);
        assert!(pool.reserve(100).is_ok());
    }
}
