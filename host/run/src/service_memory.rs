//! The memory of what services send, divided between owners.
//!
//! Each response of a service has a limit of its own. Services of strangers could still exhaust the
//! memory of the host with many responses at once. So all responses that arrive have a limit
//! together, and those of one owner hold at most half of what those of other owners leave; see
//! [`shared_pool`](crate::shared_pool). The owner is the caller for whom the host sent the request,
//! or the MCP server, whose sessions serve all callers.
//!
//! A response counts the bytes that have arrived, and not the length that a service declares. It
//! counts until its adapter has read it and hands over the result, which has limits of its own.
//! Growth is granted or refused at once: responses that hold memory and wait for more could wait
//! for one another forever.

use std::fmt;

use serde_json::json;
use wattle_graph::failure::{Failure, code};

use crate::fair_share::share_of;
use crate::limit::{SERVICE_CHUNK_BYTES, SMALL_RESPONSE_BYTES};
use crate::memory_budget::DEFAULT_BUDGET;
use crate::meter::WorkOwner;
use crate::shared_pool::{PoolLease, PoolLimits, Room, SharedPool};

/// Name of the limit in the details of failures.
const SERVICES_MEMORY: &str = "services_memory";

/// The memory of all responses that arrive. Clones share it.
#[derive(Clone)]
pub struct ServiceMemory(SharedPool<WorkOwner>);

impl ServiceMemory {
    /// Creates a memory of `total` bytes.
    #[must_use]
    pub fn new(total: u64) -> Self {
        // No response waits.
        Self(SharedPool::new(PoolLimits { total, small: SMALL_RESPONSE_BYTES, waiting: 0 }))
    }

    /// Returns the memory of one response, at first 0 bytes.
    pub fn response(&self, owner: impl Into<WorkOwner>) -> ResponseMemory {
        ResponseMemory { pool: self.0.clone(), owner: owner.into(), lease: None }
    }
}

impl Default for ServiceMemory {
    fn default() -> Self {
        Self::new(DEFAULT_BUDGET.services_bytes)
    }
}

impl fmt::Debug for ServiceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceMemory").field("total", &self.0.total()).finish_non_exhaustive()
    }
}

/// The memory that one response takes. On drop, all of it becomes free.
pub struct ResponseMemory {
    pool: SharedPool<WorkOwner>,
    owner: WorkOwner,
    /// `None` before the first byte.
    lease: Option<PoolLease<WorkOwner>>,
}

impl ResponseMemory {
    /// Sets the bytes that the response takes. They are rounded up to whole chunks, so that most
    /// calls take nothing from the pool.
    ///
    /// # Errors
    ///
    /// [`ServicesFull`] if the owner does not have the memory. The response then holds what it held
    /// before.
    pub fn set(&mut self, bytes: u64) -> Result<(), ServicesFull> {
        let chunks = bytes.div_ceil(SERVICE_CHUNK_BYTES);
        let whole = chunks.saturating_mul(SERVICE_CHUNK_BYTES);
        if self.try_set(whole) {
            return Ok(());
        }
        let (most, share) = (self.most(), self.pool.share(&self.owner));
        let can_fit = whole <= most;
        Err(ServicesFull { allowed: if can_fit { share } else { most }, can_fit })
    }

    /// Returns the bytes that one response can hold if no other one arrives. A small one can use the
    /// whole share.
    fn most(&self) -> u64 {
        let small = SMALL_RESPONSE_BYTES.min(share_of(self.pool.total(), 0));
        self.pool.most_of_one().max(small)
    }

    fn try_set(&mut self, bytes: u64) -> bool {
        if let Some(lease) = &self.lease {
            lease.shrink_to(bytes);
            return lease.grow_to(bytes);
        }
        if bytes == 0 {
            return true;
        }
        let room = if bytes <= SMALL_RESPONSE_BYTES { Room::Whole } else { Room::Usual };
        self.lease = self.pool.try_enter(self.owner.clone(), bytes, room);
        self.lease.is_some()
    }
}

/// The error of a response that does not get memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "responses of services hold their share of memory, at present {allowed} bytes; request less at \
     once, or raise `limits.services_memory`"
)]
pub struct ServicesFull {
    /// The share of the owner, or what one response can hold at most, in bytes.
    pub allowed: u64,
    /// False if the response would not fit either if no other one arrived.
    pub can_fit: bool,
}

impl ServicesFull {
    /// Returns the failure for a caller, which is retryable if the response may fit later. `what`
    /// names the response.
    #[must_use]
    pub fn to_failure(self, what: &str) -> Failure {
        let failure = Failure::new(code::LIMIT, format!("{what} cannot be read: {self}"));
        let failure = failure.with_details(self.details());
        if self.can_fit { failure.retryable() } else { failure }
    }

    /// Returns the details of failures: the name of the limit and its value.
    #[must_use]
    pub fn details(self) -> serde_json::Value {
        json!({ "limit": SERVICES_MEMORY, "allowed": self.allowed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller_id::CallerId;

    const MIB: u64 = 1 << 20;

    /// Bytes of all responses. Those of a single owner hold at most 32 MiB, and those of more than
    /// 1 MiB at most 28 MiB.
    const TOTAL: u64 = 64 * MIB;

    fn server(name: &str) -> WorkOwner {
        WorkOwner::Server(name.into())
    }

    #[test]
    fn responses_of_one_owner_leave_memory_to_those_of_another() {
        let memory = ServiceMemory::new(TOTAL);
        let (mut first, mut second) = (memory.response(server("a")), memory.response(server("a")));
        first.set(20 * MIB).unwrap();
        let full = second.set(20 * MIB).unwrap_err();
        assert_eq!(full, ServicesFull { allowed: 32 * MIB, can_fit: true });
        memory.response(CallerId::default()).set(15 * MIB).unwrap();
        drop(first);
        second.set(20 * MIB).unwrap();
    }

    #[test]
    fn response_that_does_not_grow_keeps_what_it_holds() {
        let memory = ServiceMemory::new(TOTAL);
        let (mut large, mut small) = (memory.response(server("a")), memory.response(server("a")));
        large.set(28 * MIB).unwrap();
        assert!(large.set(28 * MIB + 1).is_err());
        small.set(MIB).expect("small responses have a reserve");
        assert!(small.set(2 * MIB).is_err());
        large.set(MIB).unwrap();
        small.set(20 * MIB).expect("a response that becomes smaller frees memory");
    }

    #[test]
    fn small_response_that_fits_alone_may_fit_later() {
        // A single owner holds at most 1,152 KiB, of which larger responses cannot use an eighth.
        let memory = ServiceMemory::new(9 * MIB / 4);
        let mut held = memory.response(server("a"));
        held.set(MIB / 2).unwrap();
        let mut small = memory.response(server("b"));
        let full = small.set(MIB).unwrap_err();
        assert!(full.can_fit, "{full:?}");
        drop(held);
        small.set(MIB).unwrap();
    }

    #[test]
    fn failure_names_the_limit_and_is_retryable_if_the_response_may_fit() {
        let memory = ServiceMemory::new(TOTAL);
        let mut held = memory.response(server("a"));
        held.set(20 * MIB).unwrap();
        for (bytes, retryable, allowed) in [(20 * MIB, true, 32 * MIB), (29 * MIB, false, 28 * MIB)]
        {
            let full = memory.response(server("a")).set(bytes).unwrap_err();
            let failure = full.to_failure("the response");
            assert_eq!((&*failure.code, failure.retryable), (code::LIMIT, retryable), "{failure}");
            let details = json!({ "limit": "services_memory", "allowed": allowed });
            assert_eq!(failure.details, Some(details));
            assert!(failure.message.contains("`limits.services_memory`"), "{failure}");
        }
    }
}
