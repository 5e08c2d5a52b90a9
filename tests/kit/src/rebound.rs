//! A name whose addresses change, as its name server lets them (DNS rebinding), and the test of
//! clients that must check each of them.

use std::collections::VecDeque;
use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Client;
use wattle_run::lookups::Lookup;

use crate::standin::{Config, Server};

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

/// Sends a request over a connection of its own. Returns the cause if there is no response.
pub async fn get(client: &Client, url: &str) -> Result<(), String> {
    let sent = client.get(url).header("connection", "close").send().await;
    let cause = |error: reqwest::Error| {
        let causes = std::iter::successors(error.source(), |cause| (**cause).source());
        causes.last().map(ToString::to_string).unwrap_or_default()
    };
    sent.map(drop).map_err(cause)
}

/// Asserts that a client checks the addresses of `rebound.example` for every connection.
///
/// The client gets the lookups of the name and allows 127.0.0.1 only. `refusals` are the causes of
/// its errors for the addresses 10.0.0.1, and ::1 with 169.254.169.254.
///
/// # Panics
///
/// If a request has another outcome.
pub async fn assert_checked_for_every_connection(
    client: impl FnOnce(ReboundName) -> Client,
    refusals: [String; 2],
) {
    let server = Server::start(Config::default()).await.expect("the stand-in starts");
    let url = format!("http://rebound.example:{}/", server.addr.port());
    let lookup = ReboundName::new(&[
        &["127.0.0.1"],
        &["10.0.0.1"],
        &["10.0.0.1", "127.0.0.1"],
        &["::1", "169.254.169.254"],
    ]);
    let client = client(lookup.clone());
    let [one, two] = refusals.map(Err);
    assert_eq!(get(&client, &url).await, Ok(()));
    assert_eq!(lookup.left(), 3, "the check and the connection use one lookup");
    assert_eq!(get(&client, &url).await, one);
    // The client skips the blocked address of a name that also has an allowed address.
    assert_eq!(get(&client, &url).await, Ok(()));
    assert_eq!(get(&client, &url).await, two);
    assert_eq!(server.requests().len(), 2);
}
