//! Bounds the lookups of names, and shares them between callers.
//!
//! The resolver of the system blocks a thread of the pool on which the store reads and writes, for
//! as long as the name servers are silent, and cannot be stopped. Guests and tenants choose names,
//! and their name servers with them. So few lookups run at once, and each counts for the caller of
//! the request until its thread is free, also after a timeout.

use std::io;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::timeout;

use crate::caller_id::CallerId;
use crate::places::Places;

/// Maximum lookups at once. The pool has 512 threads.
const MAX_LOOKUPS: usize = 64;

/// Maximum wait for a lookup and for its place. Name servers that respond do so within a second.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The places of this process. Its adapters use one pool of threads.
static SHARED: LazyLock<Lookups> = LazyLock::new(Lookups::default);

tokio::task_local! {
    /// The caller for whose request the current task looks names up. A resolver gets only the name.
    static OWNER: CallerId;
}

/// Runs a future whose lookups count for a caller.
pub fn on_behalf_of<F: Future>(owner: CallerId, work: F) -> impl Future<Output = F::Output> {
    OWNER.scope(owner, work)
}

/// Returns the caller for whom the current task looks names up, see [`on_behalf_of`].
pub fn current_owner() -> CallerId {
    OWNER.try_with(|owner| *owner).unwrap_or_default()
}

/// Looks names up, without a check of their addresses. A test replaces it by a name whose addresses
/// change.
pub trait Lookup: Clone + Send + Sync + 'static {
    /// Returns the addresses of a name. Their ports are 0; the client sets the port.
    ///
    /// # Errors
    ///
    /// The error of the resolver.
    fn lookup(&self, name: &str) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Lookup for SystemResolver {
    async fn lookup(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.collect())
    }
}

/// The places for lookups. Clones share the places.
#[derive(Clone, Debug)]
pub struct Lookups(Places);

impl Default for Lookups {
    /// Creates places that no other lookups share.
    fn default() -> Self {
        Self(Places::new(MAX_LOOKUPS))
    }
}

impl Lookups {
    /// Returns the places that all lookups of this process share.
    #[must_use]
    pub fn shared() -> Self {
        SHARED.clone()
    }

    /// Runs the lookup of a name once the caller gets a place. After a timeout, and if the future
    /// is dropped, a lookup that runs keeps its place.
    ///
    /// # Errors
    ///
    /// Returns the error of the lookup, or [`io::ErrorKind::TimedOut`].
    pub async fn run<T: Send + 'static>(
        &self,
        owner: CallerId,
        name: &str,
        lookup: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let found = async {
            let place = self.0.take(owner).await;
            let running = tokio::spawn(async move {
                let found = lookup.await;
                drop(place);
                found
            });
            running.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        };
        timeout(LOOKUP_TIMEOUT, found).await.unwrap_or_else(|_| {
            let message = format!(
                "`{name}` was not resolved within {} s, including the wait for other lookups",
                LOOKUP_TIMEOUT.as_secs()
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;
    use tokio::task::{JoinHandle, JoinSet, yield_now};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::fair_share::share_of;

    const NAME: &str = "example.com";

    #[tokio::test(start_paused = true)]
    async fn silent_name_servers_of_one_caller_leave_places_for_others() {
        let (lookups, began) = (Lookups::default(), Instant::now());
        let [one, other] = ["one", "other"].map(CallerId::of_key);
        let mut silent = JoinSet::new();
        for _ in 0..MAX_LOOKUPS {
            let lookups = lookups.clone();
            silent.spawn(async move { lookups.run(one, NAME, pending::<io::Result<()>>()).await });
        }
        yield_now().await;
        lookups.run(other, NAME, ready(Ok(()))).await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        while let Some(ended) = silent.join_next().await {
            assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(began.elapsed(), LOOKUP_TIMEOUT);
        // The threads of the lookups are not free yet.
        let late = lookups.run(one, NAME, ready(Ok(()))).await.unwrap_err();
        assert_eq!(
            late.to_string(),
            "`example.com` was not resolved within 10 s, including the wait for other lookups"
        );
        assert_eq!(began.elapsed(), 2 * LOOKUP_TIMEOUT);
        lookups.run(other, NAME, ready(Ok(()))).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn lookup_waits_for_a_place_of_its_caller() {
        let (lookups, began) = (Lookups::default(), Instant::now());
        let mut all = JoinSet::new();
        for _ in 0..2 * share_of(MAX_LOOKUPS, 0) {
            let lookups = lookups.clone();
            let slow = async {
                sleep(Duration::from_secs(1)).await;
                Ok(())
            };
            all.spawn(async move { lookups.run(CallerId::default(), NAME, slow).await });
        }
        while let Some(ended) = all.join_next().await {
            ended.unwrap().unwrap();
        }
        assert_eq!(began.elapsed().as_secs(), 2);
    }

    /// Starts a lookup that ends after a message on its channel, and panics if the channel is
    /// closed.
    fn start(lookups: &Lookups) -> (oneshot::Sender<()>, JoinHandle<io::Result<()>>) {
        let (lookups, (sender, receiver)) = (lookups.clone(), oneshot::channel::<()>());
        let lookup = async move {
            receiver.await.unwrap();
            Ok(())
        };
        let run = async move { lookups.run(CallerId::default(), NAME, lookup).await };
        (sender, tokio::spawn(run))
    }

    #[tokio::test(start_paused = true)]
    async fn place_of_a_lookup_that_panics_is_free() {
        let (lookups, began) = (Lookups::default(), Instant::now());
        let mut running: Vec<_> = (0..share_of(MAX_LOOKUPS, 0)).map(|_| start(&lookups)).collect();
        let (sender, waiting) = start(&lookups);
        sender.send(()).unwrap();
        yield_now().await;
        let (sender, panicking) = running.pop().unwrap();
        drop(sender);
        waiting.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(panicking.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn lookups_count_for_the_caller_of_the_request() {
        let owner = CallerId::of_key("one");
        assert_eq!(on_behalf_of(owner, async { current_owner() }).await, owner);
        assert!(current_owner().is_unknown());
    }
}
