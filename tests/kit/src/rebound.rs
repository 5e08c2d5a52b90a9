//! A name whose addresses change, as its name server lets them (DNS rebinding).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_run::lookups::Lookup;

/// A resolver of which each lookup returns the next list of addresses, whatever the name is. A
/// lookup after the last list fails. Clones share the lists.
#[derive(Clone, Debug)]
pub struct ReboundName(Arc<Mutex<VecDeque<Vec<SocketAddr>>>>);

impl ReboundName {
    /// Creates a resolver from the lists of IP addresses.
    pub fn new(answers: &[&[&str]]) -> Self {
        let address = |text: &&str| {
            let address = text.parse().expect("the answer is an IP address");
            SocketAddr::new(address, 0)
        };
        let answers = answers.iter().map(|answer| answer.iter().map(address).collect());
        Self(Arc::new(Mutex::new(answers.collect())))
    }

    /// Returns the number of lists that no lookup has returned.
    pub fn left(&self) -> usize {
        self.answers().len()
    }

    /// Locks the lists and ignores poisoning: no code that can panic runs under the lock.
    fn answers(&self) -> MutexGuard<'_, VecDeque<Vec<SocketAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lookup for ReboundName {
    async fn lookup(&self, _: &str) -> io::Result<Vec<SocketAddr>> {
        let answer = self.answers().pop_front();
        answer.ok_or_else(|| io::Error::other("there are more lookups than connections"))
    }
}
