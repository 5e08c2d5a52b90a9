//! Loads that are under way, at most one for each component.
//!
//! Two concurrent loads of a component would compile it twice, and would reserve the memory of its
//! code twice.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use wattle_graph::id::Digest;
use wattle_run::ports::sandbox::LoadEffort;

/// The loads that are under way, by the digests of their components.
#[derive(Default)]
pub(crate) struct RunningLoads(Mutex<HashMap<Digest, Running>>);

struct Running {
    effort: LoadEffort,
    /// Closes when the load has ended.
    ended: watch::Receiver<()>,
}

/// A load that is under way. It ends on drop.
pub(crate) struct RunningLoad<'l> {
    loads: &'l RunningLoads,
    digest: Digest,
    /// Dropped after [`RunningLoads`] has forgotten the load, because fields are dropped after
    /// [`Drop::drop`].
    _end: watch::Sender<()>,
}

impl RunningLoads {
    /// Begins a load. If another load of the component is under way, waits until that load has
    /// ended. Returns `None` if that load may take more than `effort`.
    pub(crate) async fn begin(
        &self,
        digest: Digest,
        effort: LoadEffort,
    ) -> Option<RunningLoad<'_>> {
        loop {
            let mut ended = {
                let mut loads = self.lock();
                match loads.get(&digest) {
                    Some(other) if other.effort > effort => return None,
                    Some(other) => other.ended.clone(),
                    None => {
                        let (end, ended) = watch::channel(());
                        loads.insert(digest, Running { effort, ended });
                        return Some(RunningLoad { loads: self, digest, _end: end });
                    }
                }
            };
            // No value is ever sent, so the error means that the other load has ended.
            let _ = ended.changed().await;
        }
    }

    /// Locks the loads and ignores poisoning: no other code runs under the lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningLoad<'_> {
    fn drop(&mut self) {
        self.loads.lock().remove(&self.digest);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn load_waits_for_another_load_of_the_component() {
        let loads = RunningLoads::default();
        let first = loads.begin(Digest::of(b"a"), LoadEffort::Cached).await.unwrap();
        assert!(loads.begin(Digest::of(b"b"), LoadEffort::Cached).await.is_some());
        let mut second = pin!(loads.begin(Digest::of(b"a"), LoadEffort::Full));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.await.is_some());
        assert!(loads.lock().is_empty());
    }

    #[tokio::test]
    async fn load_does_not_wait_for_a_load_of_more_effort() {
        let loads = RunningLoads::default();
        let digest = Digest::of(b"a");
        let brief = loads.begin(digest, LoadEffort::Brief).await;
        assert!(loads.begin(digest, LoadEffort::Cached).await.is_none());
        drop(brief);
        assert!(loads.begin(digest, LoadEffort::Cached).await.is_some());
    }
}
