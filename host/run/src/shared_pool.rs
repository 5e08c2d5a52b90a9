//! A limited resource of which each owner has a share: the memory and the places of guests, divided
//! between apps, and the memory of runs, divided between callers.
//!
//! The leases of one owner hold at most half of the amount that leases of other owners do not hold
//! ([`share_of`]), so an owner can always get a part. Part of each share is a reserve; see
//! [`Room`].
//!
//! A lease begins with an initial amount. It waits until this amount fits, behind the leases of the
//! same owner that wait already; see [`SharedPool::enter`]. The growth of a lease is granted or
//! denied at once: holders of leases that wait for more could wait for one another forever.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::fair_share::share_of;
use crate::limit;

/// The owner of a share. A lease and the pool have copies of it, so an owner that is costly to copy
/// is behind an [`Arc`].
pub trait ShareOwner: Clone + Eq + Hash {}

impl<O: Clone + Eq + Hash> ShareOwner for O {}

/// The part of an owner's share that may be in use after a lease has begun or grown. The rest is
/// reserved: for leases that hold little, for leases that the holder of another lease awaits, and
/// for work that was cut. Waiting leases begin in the order of the queues: [`Room::Awaited`],
/// [`Room::Dependent`], [`Room::Usual`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The whole share: for the growth of leases that hold little.
    Whole,
    /// The share without a small reserve: for new leases that the holder of another lease awaits,
    /// and for those of work that was cut.
    Awaited,
    /// The share without the whole reserve: for other new leases, and for the growth of leases that
    /// hold much.
    Usual,
    /// Like [`Room::Usual`], for new leases whose holders may wait for leases that begin within
    /// [`Room::Usual`]. Such a lease begins only if the dependent leases of the owner then leave
    /// twice the whole reserve to others, so that what they wait for can begin. The only one may
    /// have more.
    Dependent,
}

impl Room {
    fn of(self, share: u64) -> u64 {
        match self {
            Self::Whole => share,
            Self::Awaited => share - share / limit::AWAITED_RESERVE_DIVISOR,
            Self::Usual | Self::Dependent => share - share / limit::SHARE_RESERVE_DIVISOR,
        }
    }
}

/// The limits of a [`SharedPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The amount of all leases together.
    pub total: u64,
    /// The amount up to which a lease holds little.
    pub small: u64,
    /// Maximum number of leases of an owner that wait in each of its three queues.
    pub waiting: usize,
}

/// A resource that owners share, such as bytes of memory. Clones share the same state.
#[derive(Clone)]
pub struct SharedPool<O: ShareOwner>(Arc<Pool<O>>);

struct Pool<O: ShareOwner> {
    limits: PoolLimits,
    state: Mutex<State<O>>,
}

struct State<O: ShareOwner> {
    used: u64,
    /// The owners that hold an amount or whose leases wait.
    accounts: HashMap<O, Account<O>>,
    /// The owners whose leases wait.
    waiting: HashSet<O>,
}

struct Account<O: ShareOwner> {
    held: u64,
    /// The part of `held` of dependent leases.
    held_by_dependent: u64,
    /// Leases that wait to begin within [`Room::Awaited`].
    awaited: VecDeque<Waiter<O>>,
    /// Leases that wait to begin within [`Room::Dependent`].
    dependent: VecDeque<Waiter<O>>,
    /// Leases that wait to begin within [`Room::Usual`].
    usual: VecDeque<Waiter<O>>,
}

/// A lease that waits to begin.
struct Waiter<O: ShareOwner> {
    amount: u64,
    entry: oneshot::Sender<PoolLease<O>>,
}

/// The result of [`SharedPool::begin`].
enum Entry<O: ShareOwner> {
    Begun(PoolLease<O>),
    Waits(Waiting<O>),
    Refused,
}

/// The position of a lease in a queue. On drop, the next leases in the queue begin if they fit.
struct Waiting<O: ShareOwner> {
    pool: SharedPool<O>,
    entry: oneshot::Receiver<PoolLease<O>>,
}

impl<O: ShareOwner> Waiting<O> {
    /// Waits until the pool grants the amount of the lease.
    async fn granted(mut self) -> Option<PoolLease<O>> {
        (&mut self.entry).await.ok()
    }
}

impl<O: ShareOwner> Drop for Waiting<O> {
    fn drop(&mut self) {
        // If the pool has granted the amount already, the amount returns to the pool when the
        // channel is dropped.
        self.entry.close();
        self.pool.admit(self.pool.lock());
    }
}

impl<O: ShareOwner> SharedPool<O> {
    /// Creates a pool.
    #[must_use]
    pub fn new(limits: PoolLimits) -> Self {
        let state = State { used: 0, accounts: HashMap::new(), waiting: HashSet::new() };
        Self(Arc::new(Pool { limits, state: Mutex::new(state) }))
    }

    /// Returns the amount of all leases together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.limits.total
    }

    /// Returns the amount that one lease can hold if no other one exists.
    #[must_use]
    pub fn most_of_one(&self) -> u64 {
        Room::Usual.of(share_of(self.total(), 0))
    }

    /// Begins a lease with an initial amount, which is at most [`SharedPool::most_of_one`]. Waits
    /// until the amount fits, behind the leases of the same owner that wait already. Returns `None`
    /// if too many leases of the owner wait.
    pub async fn enter(&self, owner: O, amount: u64, room: Room) -> Option<PoolLease<O>> {
        match self.begin(owner, amount, room) {
            Entry::Begun(lease) => Some(lease),
            Entry::Waits(waiting) => waiting.granted().await,
            Entry::Refused => None,
        }
    }

    /// Begins a lease like [`SharedPool::enter`], but does not wait. Returns `None` if the amount
    /// does not fit, or if leases of the owner wait for the same room.
    #[must_use]
    pub fn try_enter(&self, owner: O, amount: u64, room: Room) -> Option<PoolLease<O>> {
        let mut state = self.lock();
        let State { used, accounts, .. } = &mut *state;
        let account = accounts.entry(owner.clone()).or_default();
        let is_taken =
            account.queue(room).is_empty() && account.take(used, self.total(), amount, room);
        if account.is_idle() {
            accounts.remove(&owner);
        }
        is_taken.then(|| self.lease(owner, amount, room))
    }

    /// Returns true if a lease of the owner can begin with this amount, and no lease of the owner
    /// waits.
    #[must_use]
    pub fn fits(&self, owner: &O, amount: u64, room: Room) -> bool {
        let state = self.lock();
        let account = state.accounts.get(owner);
        let held = account.map_or(0, |account| account.held);
        let share = share_of(self.total(), state.used - held);
        account.is_none_or(|account| !account.has_waiters())
            && held.saturating_add(amount) <= room.of(share)
    }

    /// Returns the share of an owner: what its leases may hold as long as those of other owners
    /// hold what they hold now.
    #[must_use]
    pub fn share(&self, owner: &O) -> u64 {
        let state = self.lock();
        let held = state.accounts.get(owner).map_or(0, |account| account.held);
        share_of(self.total(), state.used - held)
    }

    fn begin(&self, owner: O, amount: u64, room: Room) -> Entry<O> {
        let mut state = self.lock();
        let State { used, accounts, waiting } = &mut *state;
        let account = accounts.entry(owner.clone()).or_default();
        let queue = account.queue(room);
        queue.retain(|waiter| !waiter.entry.is_closed());
        let queued = queue.len();
        if queued == 0 && account.take(used, self.total(), amount, room) {
            return Entry::Begun(self.lease(owner, amount, room));
        }
        if queued >= self.0.limits.waiting {
            return Entry::Refused;
        }
        let (entry, waits) = oneshot::channel();
        account.queue(room).push_back(Waiter { amount, entry });
        waiting.insert(owner);
        Entry::Waits(Waiting { pool: self.clone(), entry: waits })
    }

    /// Takes a further `amount` for a lease that has begun. Returns false if `room` does not
    /// suffice.
    fn grow(&self, lease: &PoolLease<O>, amount: u64, room: Room) -> bool {
        let mut state = self.lock();
        let State { used, accounts, .. } = &mut *state;
        let account = accounts.entry(lease.owner.clone()).or_default();
        let is_taken = account.take(used, self.total(), amount, room);
        if is_taken && lease.is_dependent {
            account.held_by_dependent += amount;
        }
        is_taken
    }

    /// Takes a further `amount` for a lease that has begun, also beyond the share of its owner.
    fn count(&self, lease: &PoolLease<O>, amount: u64) {
        let mut state = self.lock();
        state.used += amount;
        let account = state.accounts.entry(lease.owner.clone()).or_default();
        account.held += amount;
        if lease.is_dependent {
            account.held_by_dependent += amount;
        }
    }

    fn give(&self, lease: &PoolLease<O>, amount: u64) {
        let mut state = self.lock();
        let State { used, accounts, .. } = &mut *state;
        *used -= amount;
        if let Some(account) = accounts.get_mut(&lease.owner) {
            account.held -= amount;
            if lease.is_dependent {
                account.held_by_dependent -= amount;
            }
            if account.is_idle() {
                accounts.remove(&lease.owner);
            }
        }
        self.admit(state);
    }

    /// Begins the waiting leases that fit, in the order of each queue. Reads only the accounts of
    /// owners whose leases wait.
    fn admit(&self, mut state: MutexGuard<'_, State<O>>) {
        let State { used, accounts, waiting } = &mut *state;
        // The leases that have stopped waiting since `first_waiter`.
        let mut unclaimed = Vec::new();
        waiting.retain(|owner| {
            let Some(account) = accounts.get_mut(owner) else { return false };
            for room in [Room::Awaited, Room::Dependent, Room::Usual] {
                while let Some(amount) = account.first_waiter(room)
                    && account.take(used, self.total(), amount, room)
                {
                    let lease = self.lease(owner.clone(), amount, room);
                    match account.queue(room).pop_front() {
                        Some(waiter) => unclaimed.extend(waiter.entry.send(lease).err()),
                        None => unclaimed.push(lease),
                    }
                }
            }
            let has_waiters = account.has_waiters();
            if account.is_idle() {
                accounts.remove(owner);
            }
            has_waiters
        });
        drop(state);
        // Dropping a lease locks the state again.
        drop(unclaimed);
    }

    fn lease(&self, owner: O, amount: u64, room: Room) -> PoolLease<O> {
        let (held, is_dependent) = (AtomicU64::new(amount), room == Room::Dependent);
        PoolLease { pool: self.clone(), owner, held, is_dependent }
    }

    /// Locks the state and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: ShareOwner> Default for Account<O> {
    fn default() -> Self {
        let (awaited, dependent, usual) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { held: 0, held_by_dependent: 0, awaited, dependent, usual }
    }
}

impl<O: ShareOwner> Account<O> {
    /// Takes an amount from the pool if the account then holds no more than `room` permits. `used`
    /// is the amount that all accounts hold together.
    fn take(&mut self, used: &mut u64, total: u64, amount: u64, room: Room) -> bool {
        let after = self.held.saturating_add(amount);
        let share = share_of(total, *used - self.held);
        if after > room.of(share) {
            return false;
        }
        if room == Room::Dependent {
            let dependent = self.held_by_dependent.saturating_add(amount);
            let most = share - share / limit::SHARE_RESERVE_DIVISOR * 2;
            // Otherwise a lease of more than this part could never begin.
            let is_only = self.held_by_dependent == 0;
            if dependent > most && !is_only {
                return false;
            }
            self.held_by_dependent = dependent;
        }
        *used += amount;
        self.held = after;
        true
    }

    fn queue(&mut self, room: Room) -> &mut VecDeque<Waiter<O>> {
        match room {
            Room::Awaited => &mut self.awaited,
            Room::Dependent => &mut self.dependent,
            Room::Whole | Room::Usual => &mut self.usual,
        }
    }

    /// Returns the amount of the first lease in the queue that still waits.
    fn first_waiter(&mut self, room: Room) -> Option<u64> {
        let queue = self.queue(room);
        while queue.front().is_some_and(|waiter| waiter.entry.is_closed()) {
            queue.pop_front();
        }
        queue.front().map(|waiter| waiter.amount)
    }

    fn has_waiters(&self) -> bool {
        !(self.awaited.is_empty() && self.dependent.is_empty() && self.usual.is_empty())
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && !self.has_waiters()
    }
}

/// The amount that one guest or run holds. On drop, this amount returns to the pool.
pub struct PoolLease<O: ShareOwner> {
    pool: SharedPool<O>,
    owner: O,
    held: AtomicU64,
    /// True if the lease began within [`Room::Dependent`].
    is_dependent: bool,
}

impl<O: ShareOwner> PoolLease<O> {
    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &SharedPool<O> {
        &self.pool
    }

    /// Returns the owner.
    #[must_use]
    pub fn owner(&self) -> &O {
        &self.owner
    }

    /// Returns the amount.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes a further `more`. Returns false, and changes nothing, if the pool does not have
    /// enough.
    #[must_use]
    pub fn grow_by(&self, more: u64) -> bool {
        let is_small = self.held().saturating_add(more) <= self.pool.0.limits.small;
        let room = if is_small { Room::Whole } else { Room::Usual };
        let is_granted = self.pool.grow(self, more, room);
        if is_granted {
            self.held.fetch_add(more, Ordering::Relaxed);
        }
        is_granted
    }

    /// Takes a further `more` for what exists already, also beyond the share of the owner. Later
    /// leases and growth of the owner find less room.
    pub fn count(&self, more: u64) {
        self.pool.count(self, more);
        self.held.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns `less` of the amount to the pool.
    pub fn shrink_by(&self, less: u64) {
        self.held.fetch_sub(less, Ordering::Relaxed);
        self.pool.give(self, less);
    }

    /// Raises the amount to `amount`. Returns false, and changes nothing, if the pool does not have
    /// enough. Only one task at a time may call this function and [`PoolLease::shrink_to`].
    #[must_use]
    pub fn grow_to(&self, amount: u64) -> bool {
        let more = amount.saturating_sub(self.held());
        more == 0 || self.grow_by(more)
    }

    /// Lowers the amount to `amount`, and returns the difference to the pool.
    pub fn shrink_to(&self, amount: u64) {
        let less = self.held().saturating_sub(amount);
        if less > 0 {
            self.shrink_by(less);
        }
    }
}

impl<O: ShareOwner> Drop for PoolLease<O> {
    fn drop(&mut self) {
        self.pool.give(self, self.held());
    }
}

#[cfg(test)]
mod tests;
