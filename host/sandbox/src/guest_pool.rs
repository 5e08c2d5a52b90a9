//! Resources that all guests of a host share, and of which each app has a share: the memory of all
//! guests in bytes, and the places of each engine.
//!
//! [`wattle_run::shared_pool`] divides them between apps. Each guest has limits of its own memory;
//! see [`crate::memory_meter`]. The pool counts the memory that a guest holds, and not the limit of
//! the guest.

use std::sync::Arc;
use std::time::Duration;

use wattle_graph::id::AppName;
use wattle_run::gate::AwaitedBy;
use wattle_run::limit;
use wattle_run::shared_pool::{self, PoolLimits, Room, SharedPool};

/// The owner of a share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PoolOwner {
    /// An app, with all of its loaded versions.
    App(AppName),
    /// The web handlers of an app, and the tools that the handlers call. The places of these guests
    /// count apart from the places of other guests of the app. Their memory does not count apart,
    /// but leaves a part to those; see [`Room::Dependent`].
    Handlers(AppName),
    /// Components that describe themselves while they are loaded.
    Descriptions,
}

/// What one guest holds. On drop, it returns to the pool.
pub(crate) type PoolLease = shared_pool::PoolLease<Arc<PoolOwner>>;

/// A resource that all guests share, such as bytes of memory. Clones share the same state.
///
/// The two leases of a guest and the pool share its owner, which has a name.
#[derive(Clone)]
pub(crate) struct GuestPool(SharedPool<Arc<PoolOwner>>);

impl GuestPool {
    /// Creates a pool of the amount `total`.
    pub(crate) fn new(total: u64) -> Self {
        let (small, waiting) = (limit::SMALL_GUEST_BYTES, limit::WAITING_GUESTS);
        Self(SharedPool::new(PoolLimits { total, small, waiting }))
    }

    /// Returns the amount of all guests together.
    pub(crate) fn total(&self) -> u64 {
        self.0.total()
    }

    /// Returns the amount that one guest can hold if no other one exists.
    pub(crate) fn most_of_one_guest(&self) -> u64 {
        self.0.most_of_one()
    }

    /// Takes the initial amount of a guest, which is at most [`GuestPool::most_of_one_guest`].
    /// Waits until the amount fits, behind the guests of the same owner that wait already. Returns
    /// `None` if too many guests of the owner wait, or if a client or a guest waits for this guest
    /// and [`limit::GUEST_WAIT_MS`] have passed.
    pub(crate) async fn enter(
        &self,
        owner: Arc<PoolOwner>,
        amount: u64,
        awaited_by: AwaitedBy,
    ) -> Option<PoolLease> {
        let room = room_to_start(&owner, awaited_by);
        let entered = self.0.enter(owner, amount, room);
        if awaited_by == AwaitedBy::Superstep {
            return entered.await;
        }
        let longest = Duration::from_millis(limit::GUEST_WAIT_MS);
        tokio::time::timeout(longest, entered).await.ok()?
    }
}

/// Returns the room within which a guest of an owner starts. A web handler can wait for a run of its
/// app, whose nodes need a part of what they share with handlers.
fn room_to_start(owner: &PoolOwner, awaited_by: AwaitedBy) -> Room {
    match (awaited_by, owner) {
        (AwaitedBy::Guest, _) => Room::Awaited,
        (AwaitedBy::Client, PoolOwner::App(_)) => Room::Dependent,
        (AwaitedBy::Superstep | AwaitedBy::Client, _) => Room::Usual,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use futures::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn app(name: &str) -> Arc<PoolOwner> {
        Arc::new(PoolOwner::App(AppName::new(name).unwrap()))
    }

    /// Starts a guest of an app with an initial memory of one MiB. Returns `None` if the guest has
    /// to wait.
    fn start(pool: &GuestPool, name: &str) -> Option<PoolLease> {
        pool.enter(app(name), MIB, AwaitedBy::Superstep).now_or_never().flatten()
    }

    /// Returns the lease of a guest that holds nothing yet, from a pool of `total` bytes.
    pub(crate) fn memory_of(total: u64) -> Arc<PoolLease> {
        let pool = GuestPool::new(total);
        let memory = pool.enter(app("a"), 0, AwaitedBy::Superstep).now_or_never();
        Arc::new(memory.flatten().unwrap())
    }

    #[tokio::test]
    async fn guest_that_another_guest_awaits_starts_in_the_reserve_of_its_app() {
        let pool = GuestPool::new(64 * MIB);
        let large = start(&pool, "a").unwrap();
        assert!(large.grow_to(28 * MIB));
        let enter = |awaited_by| pool.enter(app("a"), MIB, awaited_by).now_or_never().flatten();
        assert!(enter(AwaitedBy::Superstep).is_none() && enter(AwaitedBy::Client).is_none());
        assert!(enter(AwaitedBy::Guest).is_some());
        assert!(start(&pool, "b").is_some());
    }

    #[tokio::test]
    async fn nodes_find_memory_whatever_web_handlers_wait_for_them() {
        let pool = GuestPool::new(64 * MIB);
        let handler = || pool.enter(app("a"), MIB, AwaitedBy::Client).now_or_never().flatten();
        let handlers: Vec<_> = std::iter::from_fn(handler).collect();
        assert_eq!(handlers.len(), 24, "three quarters of the share of the app");
        let nodes: Vec<_> = std::iter::from_fn(|| start(&pool, "a")).collect();
        assert_eq!(nodes.len(), 4);
    }

    #[tokio::test]
    async fn places_of_web_handlers_count_apart() {
        let pool = GuestPool::new(64);
        let owner = || Arc::new(PoolOwner::Handlers(AppName::new("a").unwrap()));
        let handler = || pool.enter(owner(), 1, AwaitedBy::Client).now_or_never().flatten();
        assert_eq!(std::iter::from_fn(handler).collect::<Vec<_>>().len(), 28);
    }

    #[tokio::test(start_paused = true)]
    async fn guest_for_a_client_waits_for_a_limited_time() {
        let pool = GuestPool::new(64 * MIB);
        let large = start(&pool, "a").unwrap();
        assert!(large.grow_to(28 * MIB));
        assert!(pool.enter(app("a"), MIB, AwaitedBy::Client).await.is_none());
    }
}
