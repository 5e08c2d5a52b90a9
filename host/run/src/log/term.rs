//! How long the leases of a host surely last.
//!
//! A lease cannot be taken over before its holder was silent for the whole time of a lease. So who
//! remembers when the last sign of life was sent that the store took knows, without asking, that
//! nobody else has any of its threads yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ports::Clock;
use crate::ports::store::{Holder, Store, StoreError};

/// Part of the time of a lease after which it does not count as sure any more: what is left is for
/// clocks that differ, and for the way from the question to the effect.
const SURE_PART: u64 = 2;

/// The name under which a host holds threads, and how long it surely does.
pub(crate) struct Term {
    holder: Holder,
    clock: Arc<dyn Clock>,
    sent: Mutex<Option<Sent>>,
}

/// When a sign of life was sent: by a clock that never goes back, and by one that goes on while the
/// machine sleeps.
#[derive(Clone, Copy)]
struct Sent {
    at: Instant,
    wall_ms: i64,
}

impl Term {
    /// A host that has shown no sign of life yet.
    pub(crate) fn new(holder: Holder, clock: Arc<dyn Clock>) -> Self {
        Self { holder, clock, sent: Mutex::default() }
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
        let sent = Sent { at: Instant::now(), wall_ms: self.clock.now_ms() };
        store.beat(&self.holder).await?;
        let mut newest = self.sent();
        if newest.is_none_or(|newest| newest.at < sent.at) {
            *newest = Some(sent);
        }
        Ok(())
    }

    /// Whether nobody can have taken a lease over that lasts so long without a sign of life.
    pub(crate) fn is_sure(&self, lease_ms: u64) -> bool {
        let Some(sent) = *self.sent() else { return false };
        let sure_ms = lease_ms / SURE_PART;
        let wall_ms = self.clock.now_ms().saturating_sub(sent.wall_ms);
        sent.at.elapsed() < Duration::from_millis(sure_ms)
            && u64::try_from(wall_ms).is_ok_and(|wall_ms| wall_ms < sure_ms)
    }

    /// No code that can panic runs under this lock.
    fn sent(&self) -> MutexGuard<'_, Option<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
