//! Bytes of request bodies in memory, limited per caller and in total.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wattle_run::fair_share::Pool;

use crate::guard::limits::{ALL_BODY_BYTES, LARGEST_BODIES};
use crate::guard::open::Subject;
use crate::traffic::{Cut, Traffic};

/// Returns the limit for all bodies in total, given the limit for one body.
pub(crate) fn body_bytes(body_limit_bytes: usize) -> usize {
    ALL_BODY_BYTES.max(body_limit_bytes.saturating_mul(LARGEST_BODIES))
}

/// The bytes that one request body occupies, until they are released. Stored in the extensions of
/// the request. Clones share the bytes.
#[derive(Clone)]
pub(crate) struct BodyLease(Arc<Held>);

struct Held {
    pool: Pool<Subject>,
    subject: Subject,
    traffic: Arc<Traffic>,
    bytes: AtomicUsize,
}

impl BodyLease {
    /// Creates a lease of 0 bytes.
    pub(crate) fn new(pool: &Pool<Subject>, subject: &Subject, traffic: &Arc<Traffic>) -> Self {
        let (pool, subject, traffic) = (pool.clone(), subject.clone(), traffic.clone());
        Self(Arc::new(Held { pool, subject, traffic, bytes: AtomicUsize::new(0) }))
    }

    /// Adds bytes to the lease. Returns false, and adds none, if the limit does not permit them.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        let Held { pool, subject, traffic, bytes: held } = &*self.0;
        let is_taken = pool.take(subject, bytes, usize::MAX).is_ok();
        if is_taken {
            held.fetch_add(bytes, Ordering::Relaxed);
        } else {
            traffic.cut(Cut::Bodies);
        }
        is_taken
    }

    /// Replaces the bytes of the lease. Returns false, and holds none, if the limit does not permit
    /// them.
    pub(crate) fn replace(&self, bytes: usize) -> bool {
        self.release();
        self.grow(bytes)
    }

    /// Releases all bytes.
    pub(crate) fn release(&self) {
        self.0.release();
    }
}

impl Held {
    fn release(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        if bytes > 0 {
            self.pool.give(&self.subject, bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_cannot_take_all_body_memory() {
        let pool = Pool::new(100);
        let [one, other] = ["a", "b"].map(|id| Subject::Key(id.to_owned()));
        let lease = |subject| BodyLease::new(&pool, subject, &Arc::default());
        let large = lease(&one);
        assert!(large.grow(30) && large.grow(20) && !large.grow(1));
        assert!(!lease(&one).grow(1), "the limit is per caller, not per request");
        let small = lease(&other);
        assert!(small.grow(25));
        large.release();
        assert!(small.grow(25));
        drop(small);
        assert!(large.grow(50));
        assert!(large.replace(10) && lease(&other).grow(45));
        assert!(!large.replace(51) && lease(&other).grow(50), "it holds nothing");
    }

    #[test]
    fn limit_of_all_bodies_fits_several_large_ones() {
        assert_eq!(body_bytes(16 << 20), 256 << 20);
        assert_eq!(body_bytes(1 << 30), 4 << 30);
    }
}
