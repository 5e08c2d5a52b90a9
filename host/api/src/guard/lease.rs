//! Bytes of request bodies that are in memory, of each caller and of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::guard::limits::{ALL_BODY_BYTES, LARGEST_BODIES};
use crate::guard::open::Subject;
use crate::guard::pool::Pool;
use crate::traffic::{Cut, Traffic};

/// The limit for all bodies, by the limit for one.
pub(crate) fn body_bytes(body_limit_bytes: usize) -> usize {
    ALL_BODY_BYTES.max(body_limit_bytes.saturating_mul(LARGEST_BODIES))
}

/// The bytes that the body of a request takes, until they are released. It is among the extensions of
/// the request. Clones share it.
#[derive(Clone)]
pub(crate) struct BodyLease(Arc<Held>);

struct Held {
    pool: Pool,
    subject: Subject,
    traffic: Arc<Traffic>,
    bytes: AtomicUsize,
}

impl BodyLease {
    /// A lease of no bytes.
    pub(crate) fn new(pool: &Pool, subject: &Subject, traffic: &Arc<Traffic>) -> Self {
        let (pool, subject, traffic) = (pool.clone(), subject.clone(), traffic.clone());
        Self(Arc::new(Held { pool, subject, traffic, bytes: AtomicUsize::new(0) }))
    }

    /// Takes more, and says whether there were as many.
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

    /// Returns all of them.
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
    fn bodies_of_one_caller_leave_room_for_those_of_others() {
        let pool = Pool::new(100);
        let [one, other] = ["a", "b"].map(|id| Subject::Key(id.to_owned()));
        let lease = |subject| BodyLease::new(&pool, subject, &Arc::default());
        let large = lease(&one);
        assert!(large.grow(30) && large.grow(20) && !large.grow(1));
        assert!(!lease(&one).grow(1), "it is the caller's, not the request's");
        let small = lease(&other);
        assert!(small.grow(25));
        large.release();
        assert!(small.grow(25));
        drop(small);
        assert!(large.grow(50));
    }

    #[test]
    fn a_few_bodies_always_fit() {
        assert_eq!(body_bytes(16 << 20), 256 << 20);
        assert_eq!(body_bytes(1 << 30), 4 << 30);
    }
}
