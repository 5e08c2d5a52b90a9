//! Shares, queues and reserves of a shared pool.

use std::pin::pin;

use futures::FutureExt;

use super::*;

const MIB: u64 = 1 << 20;

/// The amount up to which a lease holds little.
const SMALL: u64 = 4 * MIB;

/// Maximum number of leases of an owner that wait.
const WAITING: usize = 10;

type TestPool = SharedPool<&'static str>;

fn pool() -> TestPool {
    SharedPool::new(PoolLimits { total: 64 * MIB, small: SMALL, waiting: WAITING })
}

/// Begins a lease of one MiB. Returns `None` if it has to wait.
fn start(pool: &TestPool, owner: &'static str) -> Option<PoolLease<&'static str>> {
    pool.enter(owner, MIB, Room::Usual).now_or_never().flatten()
}

fn used(pool: &TestPool) -> u64 {
    pool.lock().used
}

#[test]
fn an_owner_holds_at_most_half_of_what_others_leave() {
    let pool = pool();
    assert_eq!(pool.most_of_one(), 28 * MIB);
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
fn initial_amount_of_a_lease_counts_once() {
    let pool = pool();
    let lease = start(&pool, "a").unwrap();
    assert!(lease.grow_to(MIB));
    assert_eq!(used(&pool), MIB);
    assert!(lease.grow_to(3 * MIB));
    assert_eq!(used(&pool), 3 * MIB);
    lease.shrink_to(2 * MIB);
    assert_eq!(used(&pool), 2 * MIB);
}

#[test]
fn lease_that_holds_little_may_grow_into_the_reserve_of_its_owner() {
    let pool = pool();
    let (small, large) = (start(&pool, "a").unwrap(), start(&pool, "a").unwrap());
    assert!(large.grow_to(27 * MIB) && !large.grow_to(28 * MIB));
    assert!(small.grow_to(SMALL));
    assert!(!small.grow_to(SMALL + 1));
}

#[test]
fn amount_that_exists_already_counts_beyond_the_share() {
    let pool = pool();
    let (a, b) = (start(&pool, "a").unwrap(), start(&pool, "b").unwrap());
    a.count(40 * MIB);
    assert_eq!((a.held(), used(&pool)), (41 * MIB, 42 * MIB));
    assert!(!a.grow_by(1));
    // `a` leaves 23 MiB.
    assert_eq!(pool.share(&"b"), 23 * MIB / 2);
    assert!(b.grow_by(9 * MIB) && !b.grow_by(MIB));
    a.shrink_by(40 * MIB);
    assert!(b.grow_by(MIB) && a.grow_by(MIB));
    drop((a, b));
    assert_eq!(used(&pool), 0);
}

#[tokio::test]
async fn dependent_leases_leave_a_part_of_the_share_to_others() {
    let pool = pool();
    let enter = |amount, room| pool.enter("a", amount, room).now_or_never().flatten();
    let only = enter(26 * MIB, Room::Dependent).expect("the only one may have more than its part");
    assert!(enter(MIB, Room::Dependent).is_none());
    only.shrink_to(20 * MIB);
    let second = enter(4 * MIB, Room::Dependent).unwrap();
    let mut waiting = Box::pin(pool.enter("a", MIB, Room::Dependent));
    assert!(waiting.as_mut().now_or_never().is_none());
    let usual = enter(4 * MIB, Room::Usual).expect("no dependent lease is before it");
    drop(usual);
    assert!(waiting.as_mut().now_or_never().is_none(), "that part is not for it");
    assert!(second.grow_to(8 * MIB));
    drop(only);
    let third = waiting.await.unwrap();
    assert_eq!(used(&pool), 9 * MIB);
    drop((second, third));
    assert!(pool.lock().accounts.is_empty());
}

#[tokio::test]
async fn lease_that_does_not_wait_comes_after_those_that_wait() {
    let pool = pool();
    let try_enter = || pool.try_enter("a", MIB, Room::Usual);
    let fits = || pool.fits(&"a", MIB, Room::Usual);
    assert!(fits());
    let large = try_enter().unwrap();
    assert!(large.grow_to(27 * MIB));
    assert!(fits());
    let mut waiting = Box::pin(pool.enter("a", 2 * MIB, Room::Usual));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert!(!fits() && try_enter().is_none());
    drop(waiting);
    assert!(fits() && try_enter().is_some());
    assert!(large.grow_to(28 * MIB));
    assert!(!fits() && try_enter().is_none());
    drop(large);
    assert!(pool.lock().accounts.is_empty());
}

#[tokio::test]
async fn waiting_leases_begin_in_order_when_the_resource_is_freed() {
    let pool = pool();
    let (small, large) = (start(&pool, "a").unwrap(), start(&pool, "a").unwrap());
    assert!(large.grow_to(27 * MIB));
    let mut first = pin!(pool.enter("a", MIB, Room::Usual));
    let mut second = pin!(pool.enter("a", MIB, Room::Usual));
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
async fn lease_that_stops_waiting_does_not_block_the_leases_behind_it() {
    let pool = pool();
    let large = start(&pool, "a").unwrap();
    assert!(large.grow_to(28 * MIB));
    let mut second = Box::pin(pool.enter("a", MIB, Room::Usual));
    let mut first = Box::pin(pool.enter("a", 20 * MIB, Room::Usual));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    drop(large);
    let started = second.await;
    assert_eq!(used(&pool), MIB);
    // An amount that was granted to a lease that has stopped waiting also returns to the pool.
    let more = started.unwrap();
    assert!(more.grow_to(28 * MIB));
    let mut unclaimed = Box::pin(pool.enter("a", MIB, Room::Usual));
    assert!(unclaimed.as_mut().now_or_never().is_none());
    drop(more);
    assert_eq!(used(&pool), MIB);
    drop(unclaimed);
    assert_eq!(used(&pool), 0);
}

#[tokio::test]
async fn lease_begins_when_the_lease_before_it_stops_waiting() {
    let pool = pool();
    let large = start(&pool, "a").unwrap();
    // An owner may use 28 MiB before its leases have to wait.
    assert!(large.grow_to(27 * MIB));
    let mut first = Box::pin(pool.enter("a", 20 * MIB, Room::Usual));
    let mut second = Box::pin(pool.enter("a", MIB, Room::Usual));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert!(second.as_mut().now_or_never().flatten().is_some());
    drop(large);
    assert!(pool.lock().accounts.is_empty());
}

#[test]
fn leases_beyond_the_number_that_may_wait_are_refused() {
    let pool = pool();
    let large = start(&pool, "a").unwrap();
    assert!(large.grow_to(28 * MIB));
    let begin = || pool.begin("a", MIB, Room::Usual);
    let waiting: Vec<_> = (0..WAITING).map(|_| begin()).collect();
    assert!(waiting.iter().all(|entry| matches!(entry, Entry::Waits(_))));
    assert!(matches!(begin(), Entry::Refused));
    drop(waiting);
    assert!(matches!(begin(), Entry::Waits(_)));
}
