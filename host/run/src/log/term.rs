//! How long the leases of a host surely last.
//!
//! A lease cannot be taken over before its holder was silent for the whole time of a lease. So who
//! remembers when the last sign of life was sent that the store took knows, without asking, that
//! nobody else has any of its threads yet.
//!
//! That goes on from sign to sign, as long as none comes a whole lease after the one before. After
//! such a silence others may have taken threads, so for each the store is asked whether the lease
//! still holds before the newest sign counts.
//!
//! All times count from before the question was sent, so an answer that was held back on its way
//! proves only what is still true when it is heard.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wattle_graph::id::ThreadId;

use crate::ports::Clock;
use crate::ports::store::{Epoch, Holder, Store, StoreError};

/// Part of the time of a lease after which it does not count as sure any more: what is left is for
/// clocks that differ, and for the way from the question to the effect.
const SURE_PART: u64 = 2;

/// Times that a store is asked for one lease before the caller gets the failure that the store does
/// not answer. An answer that takes longer than the sure part of a lease proves nothing.
const QUESTIONS: u32 = 4;

/// The name under which a host holds threads, and how long it surely does.
pub(crate) struct Term {
    holder: Holder,
    clock: Arc<dyn Clock>,
    signs: Mutex<Signs>,
    /// Held by the one of many threads that shows a sign of life for all of them.
    renewing: tokio::sync::Mutex<()>,
}

/// A moment: by a clock that never goes back, and by one that goes on while the machine sleeps.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    wall_ms: i64,
}

impl Moment {
    /// Whether it is surely less than so long before another.
    fn is_within(self, ms: u64, later: Self) -> bool {
        let wall_ms = u64::try_from(later.wall_ms.saturating_sub(self.wall_ms));
        later.at.saturating_duration_since(self.at) < Duration::from_millis(ms)
            && wall_ms.is_ok_and(|wall_ms| wall_ms < ms)
    }
}

/// The signs of life that the store took.
#[derive(Default)]
struct Signs {
    /// When the newest was sent.
    newest: Option<Moment>,
    /// How often one came so late that leases may have been lost before it.
    silences: u64,
}

impl Signs {
    /// Notes one that the store took by a moment. It took it before that, and the one before not
    /// earlier than that was sent.
    fn took(&mut self, sent: Moment, taken: Moment, lease_ms: u64) {
        if let Some(newest) = self.newest {
            if !newest.is_within(lease_ms, taken) {
                self.silences += 1;
            }
            if sent.at < newest.at {
                return;
            }
        }
        self.newest = Some(sent);
    }
}

impl Term {
    /// A host that has shown no sign of life yet.
    pub(crate) fn new(holder: Holder, clock: Arc<dyn Clock>) -> Self {
        let (signs, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { holder, clock, signs, renewing }
    }

    /// Under which name threads are held.
    pub(crate) fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Shows the store that the host lives.
    ///
    /// # Errors
    ///
    /// That of the store. Then it may have taken the sign or not, so it does not count.
    pub(crate) async fn beat(&self, store: &dyn Store) -> Result<(), StoreError> {
        let sent = self.now();
        store.beat(&self.holder).await?;
        let taken = self.now();
        self.signs().took(sent, taken, store.lease_ms());
        Ok(())
    }

    /// Shows a sign of life unless a recent one counts still.
    async fn renew(&self, store: &dyn Store) -> Result<(), StoreError> {
        let _turn = self.renewing.lock().await;
        if self.is_recent(store.lease_ms()) { Ok(()) } else { self.beat(store).await }
    }

    /// Whether the newest sign was sent within the sure part of a lease.
    fn is_recent(&self, lease_ms: u64) -> bool {
        let silences = self.signs().silences;
        self.is_sure(lease_ms, silences)
    }

    /// Whether nobody can have taken a lease over that lasts so long without a sign of life, and
    /// that surely held after so many silences.
    fn is_sure(&self, lease_ms: u64, silences: u64) -> bool {
        let now = self.now();
        let signs = self.signs();
        let newest = signs.newest.filter(|_| signs.silences == silences);
        newest.is_some_and(|sent| sent.is_within(lease_ms / SURE_PART, now))
    }

    fn now(&self) -> Moment {
        Moment { at: Instant::now(), wall_ms: self.clock.now_ms() }
    }

    /// No code that can panic runs under this lock.
    fn signs(&self) -> MutexGuard<'_, Signs> {
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lease of one thread within the term of its host.
pub(crate) struct Tenure {
    term: Arc<Term>,
    /// After how many silences of the host it surely held.
    silences: AtomicU64,
}

impl Tenure {
    /// That of a lease that is about to be taken. A silence that comes before the lease is granted
    /// counts, so that a stop of the process in between proves nothing.
    pub(crate) fn new(term: Arc<Term>) -> Self {
        let silences = AtomicU64::new(term.signs().silences);
        Self { term, silences }
    }

    /// Who has the lease.
    pub(crate) fn holder(&self) -> &Holder {
        self.term.holder()
    }

    /// Whether the lease holds now, without a question to the store.
    pub(crate) fn is_sure(&self, lease_ms: u64) -> bool {
        self.term.is_sure(lease_ms, self.silences.load(Ordering::Acquire))
    }

    /// Whether the lease holds; asks the store unless that is sure. The answer of the store proves
    /// nothing by itself: it may have been on its way for long. It counts if it makes the lease sure
    /// by the time at which the sign of life before the question was sent.
    ///
    /// # Errors
    ///
    /// Those of the store; [`StoreError::Backend`] if its answers come too late again and again.
    pub(crate) async fn holds(
        &self,
        store: &dyn Store,
        thread: &ThreadId,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        let lease_ms = store.lease_ms();
        let patience = Duration::from_millis(lease_ms / SURE_PART);
        for _ in 0..QUESTIONS {
            if self.is_sure(lease_ms) {
                return Ok(true);
            }
            match tokio::time::timeout(patience, self.ask(store, thread, epoch)).await {
                Ok(Ok(true)) | Err(_) => {}
                Ok(answer) => return answer,
            }
        }
        if self.is_sure(lease_ms) { Ok(true) } else { Err(too_late(patience)) }
    }

    /// Shows a sign of life and, after a silence, asks for the lease itself: from the sign on nobody
    /// can take over a lease that still holds.
    async fn ask(
        &self,
        store: &dyn Store,
        thread: &ThreadId,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        self.term.renew(store).await?;
        let silences = self.term.signs().silences;
        if silences == self.silences.load(Ordering::Acquire) {
            return Ok(true);
        }
        let holds = store.holds(thread, epoch).await?;
        if holds {
            self.silences.fetch_max(silences, Ordering::AcqRel);
        }
        Ok(holds)
    }
}

fn too_late(patience: Duration) -> StoreError {
    let message = format!("no answer came within {} ms", patience.as_millis());
    StoreError::Backend { operation: "prove a lease", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_MS: u64 = 10_000;

    #[test]
    fn a_sign_that_comes_a_lease_after_the_one_before_says_nothing_of_leases_of_before() {
        let start = Instant::now();
        let after = |ms: u64| Moment {
            at: start + Duration::from_millis(ms),
            wall_ms: i64::try_from(ms).unwrap(),
        };
        let mut signs = Signs::default();
        signs.took(after(0), after(1), LEASE_MS);
        signs.took(after(9_000), after(9_001), LEASE_MS);
        // Sent in time, but nobody knows that it was there in time.
        signs.took(after(18_000), after(19_000), LEASE_MS);
        assert_eq!(signs.silences, 1);
        signs.took(after(27_999), after(27_999), LEASE_MS);
        assert_eq!(signs.silences, 1);
        // The machine slept: one clock stood still.
        let asleep = Moment { at: after(28_000).at, wall_ms: 99_000 };
        signs.took(asleep, asleep, LEASE_MS);
        assert_eq!(signs.silences, 2);
    }
}
