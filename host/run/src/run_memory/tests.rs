//! Starts, growth and charges of the memory of runs.

use std::pin::pin;

use futures::{FutureExt, poll};

use super::*;

const MIB: u64 = 1 << 20;

fn callers() -> [CallerId; 2] {
    ["one", "other"].map(CallerId::of_key)
}

/// Returns true if a run of a caller can start with this much memory.
fn fits(pool: &RunMemoryPool, caller: CallerId, bytes: u64) -> bool {
    pool.pool.fits(&caller, bytes, Room::Usual)
}

#[test]
fn a_small_run_takes_one_chunk_and_returns_it() {
    let (pool, [one, _]) = (RunMemoryPool::new(64 * MIB), callers());
    let memory = pool.try_start(one).unwrap();
    let charges: Vec<_> = (0..4).map(|_| MemoryCharge::new(memory.clone())).collect();
    for charge in &charges {
        charge.raise_to(RUN_MEMORY_CHUNK_BYTES / 4).unwrap();
    }
    // The share is 28 MiB without its reserve.
    let rest = 28 * MIB - RUN_MEMORY_CHUNK_BYTES;
    assert!(fits(&pool, one, rest) && !fits(&pool, one, rest + 1));
    drop(memory);
    assert!(!fits(&pool, one, rest + 1), "the charges hold it");
    drop(charges);
    assert!(fits(&pool, one, 28 * MIB));
}

#[test]
fn runs_of_a_caller_hold_at_most_half_of_what_others_leave() {
    let (pool, [one, other]) = (RunMemoryPool::new(64 * MIB), callers());
    let first = MemoryCharge::new(pool.try_start(one).unwrap());
    let second = MemoryCharge::new(pool.try_start(one).unwrap());
    first.raise_to(20 * MIB).unwrap();
    second.raise_to(7 * MIB).unwrap();
    let refused = second.raise_to(9 * MIB).unwrap_err();
    assert!(lacks_memory(&refused), "{refused:?}");
    assert!(refused.message.contains(&(32 * MIB).to_string()), "{refused}");
    assert!(refused.message.contains("`limits.runs_memory`"), "{refused}");
    let third = MemoryCharge::new(pool.try_start(other).unwrap());
    third.raise_to(15 * MIB).unwrap();
    assert!(third.raise_to(17 * MIB).is_err());
    drop(first);
    second.raise_to(20 * MIB).unwrap();
    let refused = second.raise_to(29 * MIB).unwrap_err();
    assert!(!lacks_memory(&refused), "no run can have as much: {refused:?}");
    drop((second, third));
    assert!(fits(&pool, one, 28 * MIB) && fits(&pool, other, 28 * MIB));
}

#[test]
fn charge_that_falls_returns_memory_to_the_pool() {
    let (pool, [one, _]) = (RunMemoryPool::new(64 * MIB), callers());
    let mut charge = MemoryCharge::new(pool.try_start(one).unwrap());
    charge.set(20 * MIB).unwrap();
    charge.raise_to(10 * MIB).unwrap();
    assert!(!fits(&pool, one, 9 * MIB));
    charge.set(MIB).unwrap();
    let rest = 27 * MIB - RUN_MEMORY_CHUNK_BYTES;
    assert!(fits(&pool, one, rest) && !fits(&pool, one, rest + 1));
    let moved = charge.take();
    drop(charge);
    assert!(!fits(&pool, one, rest + 1));
    drop(moved);
    assert!(fits(&pool, one, 28 * MIB));
}

#[test]
fn events_count_beyond_the_share() {
    let (pool, [one, other]) = (RunMemoryPool::new(64 * MIB), callers());
    let memory = pool.try_start(one).unwrap();
    let mut events = MemoryCharge::new(memory.clone());
    events.count(40 * MIB);
    let state = MemoryCharge::new(memory);
    assert!(state.raise_to(MIB).is_err());
    assert!(pool.try_start(one).is_err() && pool.try_start(other).is_ok());
    drop(events);
    state.raise_to(MIB).unwrap();
}

#[test]
fn a_run_does_not_grow_into_what_its_events_took_beyond_the_share() {
    let (pool, [one, _]) = (RunMemoryPool::new(64 * MIB), callers());
    let large = MemoryCharge::new(pool.try_start(one).unwrap());
    large.raise_to(20 * MIB).unwrap();
    let memory = pool.try_start(one).unwrap();
    let journal = MemoryCharge::new(memory.clone());
    let mut events = MemoryCharge::new(memory);
    // Each result is an event until the store has accepted it.
    let step = RUN_MEMORY_CHUNK_BYTES / 2;
    let results = (1..=1_000).take_while(|number: &u64| {
        events.count(2 * step);
        drop(events.take());
        journal.raise_to(number * step).is_ok()
    });
    assert_eq!(results.count() as u64 * step, 8 * MIB);
    drop(large);
    journal.raise_to(28 * MIB).unwrap();
    drop((journal, events));
    assert!(fits(&pool, one, 28 * MIB));
}

#[test]
fn work_that_is_no_run_counts_nothing() {
    let mut charge = MemoryCharge::default();
    charge.raise_to(u64::MAX).unwrap();
    charge.set(1).unwrap();
    charge.count(u64::MAX);
}

#[tokio::test(start_paused = true)]
async fn start_of_a_run_waits_for_memory_for_a_limited_time() {
    let (pool, [one, other]) = (RunMemoryPool::new(64 * MIB), callers());
    let large = MemoryCharge::new(pool.try_start(one).unwrap());
    large.raise_to(28 * MIB).unwrap();
    assert!(lacks_memory(&pool.try_start(one).err().unwrap()));
    let mut waiting = pin!(pool.start(one));
    assert!(poll!(waiting.as_mut()).is_pending());
    assert!(pool.start(other).now_or_never().is_some_and(|started| started.is_ok()));
    drop(large);
    let started = waiting.await.unwrap();
    let large = MemoryCharge::new(started);
    large.raise_to(28 * MIB).unwrap();
    let refused = pool.start(one).await.err().unwrap();
    assert!(lacks_memory(&refused) && refused.message.contains("30 s"), "{refused}");
}

#[test]
fn runs_that_were_cut_come_before_new_runs() {
    let (pool, [one, _]) = (RunMemoryPool::new(64 * MIB), callers());
    let large = MemoryCharge::new(pool.try_start(one).unwrap());
    large.raise_to(28 * MIB).unwrap();
    assert!(pool.try_start(one).is_err());
    // The share is 32 MiB, of which 1 MiB is kept for the growth of small runs.
    let recovered: Vec<_> = (0..12).map(|_| pool.recover(one).unwrap()).collect();
    assert!(lacks_memory(&pool.recover(one).err().unwrap()));
    drop((large, recovered));
    assert!(pool.may_start(one));
}

#[tokio::test]
async fn starts_beyond_the_number_that_may_wait_are_refused() {
    let (pool, [one, _]) = (RunMemoryPool::new(64 * MIB), callers());
    let large = MemoryCharge::new(pool.try_start(one).unwrap());
    large.raise_to(28 * MIB).unwrap();
    let mut waiting: Vec<_> = (0..WAITING_RUNS).map(|_| Box::pin(pool.start(one))).collect();
    for start in &mut waiting {
        assert!(poll!(start.as_mut()).is_pending());
    }
    let refused = pool.start(one).now_or_never().unwrap().err().unwrap();
    assert!(lacks_memory(&refused) && refused.message.contains("1000 more"), "{refused}");
}

#[tokio::test]
async fn freed_memory_is_signalled_to_the_task_that_starts_pending_runs() {
    let (pool, [one, _]) = (RunMemoryPool::new(64 * MIB), callers());
    let large = MemoryCharge::new(pool.try_start(one).unwrap());
    drop(pool.try_start(one).unwrap());
    assert!(pool.freed().now_or_never().is_none(), "no caller lacked memory");
    large.raise_to(28 * MIB).unwrap();
    assert!(!pool.may_start(one));
    drop(large);
    assert!(pool.freed().now_or_never().is_some() && pool.may_start(one));
}
