//! Resources that all guests of a host share, and of which each app has a share: the memory of all
//! guests in bytes, and the places of each engine.
//!
//! The guests of one app hold at most half of the amount that guests of other apps do not hold
//! ([`share_of`]), so an app can always get a part. Part of each share is a reserve; see [`Room`].
//! Before a guest starts, it waits until its initial amount fits.
//!
//! Each guest has limits of its own memory; see [`crate::memory_meter`]. The pool counts the memory
//! that a guest holds, and not the limit of the guest. The growth of a running guest is granted or
//! denied at once: guests that hold memory and wait for more could wait for one another forever.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use wattle_graph::id::AppName;
use wattle_run::fair_share::share_of;
use wattle_run::gate::AwaitedBy;
use wattle_run::limit;

/// The owner of a share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PoolOwner {
    /// An app, with all of its loaded versions.
    App(AppName),
    /// The web handlers of an app, and the tools that the handlers call. The places of these guests
    /// count apart from the places of other guests of the app. Their memory does not count apart.
    Handlers(AppName),
    /// Components that describe themselves while they are loaded.
    Descriptions,
}

/// The part of an app's share that may be in use after a guest has started or grown. The rest is
/// reserved: for guests that hold little, and for guests for which another guest waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// The whole share: for the growth of guests that hold little memory.
    Whole,
    /// The share without a small reserve: for the start of guests for which another guest waits.
    Awaited,
    /// The share without the whole reserve: for the start of other guests, and for the growth of
    /// guests that hold much memory.
    Usual,
}

impl Room {
    fn to_start(awaited_by: AwaitedBy) -> Self {
        match awaited_by {
            AwaitedBy::Guest => Self::Awaited,
            AwaitedBy::Superstep | AwaitedBy::Client => Self::Usual,
        }
    }

    /// Returns the room for the growth of a guest to `bytes` bytes.
    fn to_grow(bytes: u64) -> Self {
        if bytes <= limit::SMALL_GUEST_BYTES { Self::Whole } else { Self::Usual }
    }

    fn of(self, share: u64) -> u64 {
        match self {
            Self::Whole => share,
            Self::Awaited => share - share / limit::AWAITED_RESERVE_DIVISOR,
            Self::Usual => share - share / limit::SHARE_RESERVE_DIVISOR,
        }
    }
}

/// A resource that all guests share, such as bytes of memory. Clones share the same state.
#[derive(Clone)]
pub(crate) struct GuestPool(Arc<Pool>);

struct Pool {
    total: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: u64,
    accounts: HashMap<PoolOwner, Account>,
}

#[derive(Default)]
struct Account {
    held: u64,
    /// Guests that wait to start within [`Room::Awaited`].
    awaited: VecDeque<Waiter>,
    /// Guests that wait to start within [`Room::Usual`].
    usual: VecDeque<Waiter>,
}

/// A guest that waits to start.
struct Waiter {
    amount: u64,
    entry: oneshot::Sender<PoolLease>,
}

/// The result of [`GuestPool::begin`].
enum Entry {
    Started(PoolLease),
    Waits(Waiting),
    Refused,
}

/// The position of a guest in a queue. On drop, the next guests in the queue start if they fit.
struct Waiting {
    pool: GuestPool,
    entry: oneshot::Receiver<PoolLease>,
}

impl Waiting {
    /// Waits until the pool grants the amount of the guest.
    async fn granted(mut self) -> Option<PoolLease> {
        (&mut self.entry).await.ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // If the pool has granted the amount already, the amount returns to the pool when the
        // channel is dropped.
        self.entry.close();
        self.pool.admit(self.pool.lock());
    }
}

impl GuestPool {
    /// Creates a pool of the amount `total`.
    pub(crate) fn new(total: u64) -> Self {
        Self(Arc::new(Pool { total, state: Mutex::default() }))
    }

    /// Returns the amount of all guests together.
    pub(crate) fn total(&self) -> u64 {
        self.0.total
    }

    /// Returns the amount that one guest can hold if no other one exists.
    pub(crate) fn most_of_one_guest(&self) -> u64 {
        Room::Usual.of(share_of(self.0.total, 0))
    }

    /// Takes the initial amount of a guest, which is at most [`GuestPool::most_of_one_guest`].
    /// Waits until the amount fits, behind the guests of the same owner that wait already. Returns
    /// `None` if too many guests of the owner wait, or if a client or a guest waits for this guest
    /// and [`limit::GUEST_WAIT_MS`] have passed.
    pub(crate) async fn enter(
        &self,
        owner: PoolOwner,
        amount: u64,
        awaited_by: AwaitedBy,
    ) -> Option<PoolLease> {
        let waiting = match self.begin(owner, amount, Room::to_start(awaited_by)) {
            Entry::Started(memory) => return Some(memory),
            Entry::Waits(waiting) => waiting,
            Entry::Refused => return None,
        };
        if awaited_by == AwaitedBy::Superstep {
            return waiting.granted().await;
        }
        let longest = Duration::from_millis(limit::GUEST_WAIT_MS);
        tokio::time::timeout(longest, waiting.granted()).await.ok()?
    }

    fn begin(&self, owner: PoolOwner, amount: u64, room: Room) -> Entry {
        let mut state = self.lock();
        let State { used, accounts } = &mut *state;
        let account = accounts.entry(owner.clone()).or_default();
        let queue = account.queue(room);
        queue.retain(|waiter| !waiter.entry.is_closed());
        let waiting = queue.len();
        if waiting == 0 && account.take(used, self.0.total, amount, room) {
            return Entry::Started(self.lease(owner, amount));
        }
        if waiting >= limit::WAITING_GUESTS {
            return Entry::Refused;
        }
        let (entry, waits) = oneshot::channel();
        account.queue(room).push_back(Waiter { amount, entry });
        Entry::Waits(Waiting { pool: self.clone(), entry: waits })
    }

    /// Takes a further `amount` for a guest that has started. Returns false if `room` does not
    /// suffice.
    fn grow(&self, owner: &PoolOwner, amount: u64, room: Room) -> bool {
        let mut state = self.lock();
        let State { used, accounts } = &mut *state;
        let account = accounts.entry(owner.clone()).or_default();
        account.take(used, self.0.total, amount, room)
    }

    fn give(&self, owner: &PoolOwner, amount: u64) {
        let mut state = self.lock();
        state.used -= amount;
        if let Some(account) = state.accounts.get_mut(owner) {
            account.held -= amount;
        }
        self.admit(state);
    }

    /// Starts the waiting guests that fit, in order.
    fn admit(&self, mut state: MutexGuard<'_, State>) {
        let State { used, accounts } = &mut *state;
        // The leases of guests that have stopped waiting since `first_waiter`.
        let mut unclaimed = Vec::new();
        for (owner, account) in accounts.iter_mut() {
            for room in [Room::Awaited, Room::Usual] {
                while let Some(amount) = account.first_waiter(room)
                    && account.take(used, self.0.total, amount, room)
                {
                    let lease = self.lease(owner.clone(), amount);
                    match account.queue(room).pop_front() {
                        Some(waiter) => unclaimed.extend(waiter.entry.send(lease).err()),
                        None => unclaimed.push(lease),
                    }
                }
            }
        }
        accounts.retain(|_, account| !account.is_idle());
        drop(state);
        // Dropping a lease locks the state again.
        drop(unclaimed);
    }

    fn lease(&self, owner: PoolOwner, amount: u64) -> PoolLease {
        PoolLease { pool: self.clone(), owner, held: AtomicU64::new(amount) }
    }

    /// Locks the state and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Takes an amount from the pool if the account then holds no more than `room` permits. `used`
    /// is the amount that all accounts hold together.
    fn take(&mut self, used: &mut u64, total: u64, amount: u64, room: Room) -> bool {
        let after = self.held.saturating_add(amount);
        if after > room.of(share_of(total, *used - self.held)) {
            return false;
        }
        *used += amount;
        self.held = after;
        true
    }

    fn queue(&mut self, room: Room) -> &mut VecDeque<Waiter> {
        match room {
            Room::Awaited => &mut self.awaited,
            Room::Whole | Room::Usual => &mut self.usual,
        }
    }

    /// Returns the amount of the first guest in the queue that still waits.
    fn first_waiter(&mut self, room: Room) -> Option<u64> {
        let queue = self.queue(room);
        while queue.front().is_some_and(|waiter| waiter.entry.is_closed()) {
            queue.pop_front();
        }
        queue.front().map(|waiter| waiter.amount)
    }

    fn has_waiters(&self) -> bool {
        !(self.awaited.is_empty() && self.usual.is_empty())
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && !self.has_waiters()
    }
}

/// The amount that one guest holds. On drop, this amount returns to the pool.
pub(crate) struct PoolLease {
    pool: GuestPool,
    owner: PoolOwner,
    held: AtomicU64,
}

impl PoolLease {
    /// Raises the amount of the guest to `bytes` of memory in total. Returns false, and changes
    /// nothing, if the pool does not have enough.
    pub(crate) fn grow_to(&self, bytes: u64) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        if bytes <= held {
            return true;
        }
        if !self.pool.grow(&self.owner, bytes - held, Room::to_grow(bytes)) {
            return false;
        }
        self.held.store(bytes, Ordering::Relaxed);
        true
    }

    /// Lowers the amount of the guest to `amount`, and returns the difference to the pool.
    pub(crate) fn shrink_to(&self, amount: u64) {
        let held = self.held.load(Ordering::Relaxed);
        if amount < held {
            self.held.store(amount, Ordering::Relaxed);
            self.pool.give(&self.owner, held - amount);
        }
    }

    /// Returns the amount of all guests together.
    pub(crate) fn total_of_all(&self) -> u64 {
        self.pool.total()
    }

    /// Returns the amount that one guest can hold if no other one exists.
    pub(crate) fn most_of_one_guest(&self) -> u64 {
        self.pool.most_of_one_guest()
    }
}

impl Drop for PoolLease {
    fn drop(&mut self) {
        self.pool.give(&self.owner, *self.held.get_mut());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn app(name: &str) -> PoolOwner {
        PoolOwner::App(AppName::new(name).unwrap())
    }

    /// Starts a guest of an app with an initial memory of one MiB. Returns `None` if the guest has
    /// to wait.
    fn start(pool: &GuestPool, name: &str) -> Option<PoolLease> {
        pool.enter(app(name), MIB, AwaitedBy::Superstep).now_or_never().flatten()
    }

    /// Returns the lease of a guest that holds nothing yet, from a pool of `total` bytes.
    pub(crate) fn memory_of(total: u64) -> Arc<PoolLease> {
        let memory = GuestPool::new(total).lease(app("a"), 0);
        Arc::new(memory)
    }

    fn used(pool: &GuestPool) -> u64 {
        pool.lock().used
    }

    #[test]
    fn an_app_holds_at_most_half_of_the_memory_that_others_leave() {
        let pool = GuestPool::new(64 * MIB);
        assert_eq!(pool.most_of_one_guest(), 28 * MIB);
        let (a, b) = (start(&pool, "a").unwrap(), start(&pool, "b").unwrap());
        // `b` leaves 63 MiB, half of which is the share of `a`. One eighth of the share is the
        // reserve.
        assert!(a.grow_to(27 * MIB) && !a.grow_to(28 * MIB));
        // `a` leaves 37 MiB.
        assert!(b.grow_to(16 * MIB) && !b.grow_to(17 * MIB));
        assert_eq!(used(&pool), 43 * MIB);
        drop(a);
        assert!(b.grow_to(28 * MIB));
        drop(b);
        assert_eq!(used(&pool), 0);
        assert!(pool.lock().accounts.is_empty());
    }

    #[test]
    fn initial_memory_of_a_guest_counts_once() {
        let pool = GuestPool::new(64 * MIB);
        let guest = start(&pool, "a").unwrap();
        assert!(guest.grow_to(MIB));
        assert_eq!(used(&pool), MIB);
        assert!(guest.grow_to(3 * MIB));
        assert_eq!(used(&pool), 3 * MIB);
    }

    #[test]
    fn guest_with_little_memory_may_grow_into_the_reserve_of_its_app() {
        let pool = GuestPool::new(64 * MIB);
        let (small, large) = (start(&pool, "a").unwrap(), start(&pool, "a").unwrap());
        assert!(large.grow_to(27 * MIB) && !large.grow_to(28 * MIB));
        assert!(small.grow_to(limit::SMALL_GUEST_BYTES));
        assert!(!small.grow_to(limit::SMALL_GUEST_BYTES + 1));
    }

    #[tokio::test]
    async fn waiting_nodes_start_in_order_when_memory_is_freed() {
        let pool = GuestPool::new(64 * MIB);
        let (small, large) = (start(&pool, "a").unwrap(), start(&pool, "a").unwrap());
        assert!(large.grow_to(27 * MIB));
        let mut first = pin!(pool.enter(app("a"), MIB, AwaitedBy::Superstep));
        let mut second = pin!(pool.enter(app("a"), MIB, AwaitedBy::Superstep));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(small);
        assert!(second.as_mut().now_or_never().is_none());
        let started = first.await.unwrap();
        assert_eq!(used(&pool), 28 * MIB);
        drop(large);
        assert!(second.await.is_some());
        drop(started);
        assert_eq!(used(&pool), 0);
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

    #[tokio::test(start_paused = true)]
    async fn guest_for_a_client_waits_for_a_limited_time() {
        let pool = GuestPool::new(64 * MIB);
        let large = start(&pool, "a").unwrap();
        assert!(large.grow_to(28 * MIB));
        assert!(pool.enter(app("a"), MIB, AwaitedBy::Client).await.is_none());
    }

    #[tokio::test]
    async fn guest_that_stops_waiting_does_not_block_the_guests_behind_it() {
        let pool = GuestPool::new(64 * MIB);
        let large = start(&pool, "a").unwrap();
        assert!(large.grow_to(28 * MIB));
        let mut second = Box::pin(pool.enter(app("a"), MIB, AwaitedBy::Superstep));
        let mut first = Box::pin(pool.enter(app("a"), 20 * MIB, AwaitedBy::Superstep));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        drop(large);
        let started = second.await;
        assert_eq!(used(&pool), MIB);
        // Memory that was granted to a guest that has stopped waiting also returns to the pool.
        let more = started.unwrap();
        assert!(more.grow_to(28 * MIB));
        let mut unclaimed = Box::pin(pool.enter(app("a"), MIB, AwaitedBy::Superstep));
        assert!(unclaimed.as_mut().now_or_never().is_none());
        drop(more);
        assert_eq!(used(&pool), MIB);
        drop(unclaimed);
        assert_eq!(used(&pool), 0);
    }

    #[tokio::test]
    async fn guest_starts_when_the_guest_before_it_stops_waiting() {
        let pool = GuestPool::new(64 * MIB);
        let large = start(&pool, "a").unwrap();
        // An app may use 28 MiB before its guests have to wait.
        assert!(large.grow_to(27 * MIB));
        let mut first = Box::pin(pool.enter(app("a"), 20 * MIB, AwaitedBy::Superstep));
        let mut second = Box::pin(pool.enter(app("a"), MIB, AwaitedBy::Superstep));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.as_mut().now_or_never().flatten().is_some());
        drop(large);
        assert!(pool.lock().accounts.is_empty());
    }

    #[test]
    fn guests_beyond_the_number_that_may_wait_are_refused() {
        let pool = GuestPool::new(64 * MIB);
        let large = start(&pool, "a").unwrap();
        assert!(large.grow_to(28 * MIB));
        let begin = || pool.begin(app("a"), MIB, Room::Usual);
        let waiting: Vec<Entry> = (0..limit::WAITING_GUESTS).map(|_| begin()).collect();
        assert!(waiting.iter().all(|entry| matches!(entry, Entry::Waits(_))));
        assert!(matches!(begin(), Entry::Refused));
        drop(waiting);
        assert!(matches!(begin(), Entry::Waits(_)));
    }
}
