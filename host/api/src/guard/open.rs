//! Requests that are open: how many a caller has at once.
//!
//! All of them count, not streams alone: what a request becomes is known only when it has begun its
//! work, and by then a refusal would come too late.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use futures::StreamExt as _;
use wattle_graph::id::Digest;

use crate::state::ApiState;

/// Who is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A key, by its id.
    Key(String),
    /// An address that asks without a key.
    Address(IpAddr),
}

/// The open requests of each caller.
#[derive(Clone)]
pub(crate) struct OpenRequests {
    most: usize,
    counts: Arc<Mutex<HashMap<Subject, usize>>>,
}

/// One open request, until the last clone is gone. It is among the extensions of the request: who
/// answers by taking the connection over, as for a WebSocket, keeps a clone as long as that lives,
/// and ends it when [`Slot::revoked`] does.
#[derive(Clone)]
pub struct Slot(Arc<Taken>);

struct Taken {
    subject: Subject,
    requests: OpenRequests,
    /// The key that was made by a command, if the request brought one.
    key: Option<(ApiState, Digest)>,
}

impl OpenRequests {
    /// At most so many of each caller.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, counts: Arc::default() }
    }

    /// Opens one; `None` if the caller has as many as may be. `key` is what lets it pass, if that
    /// may be revoked.
    pub(crate) fn open(&self, subject: Subject, key: Option<(ApiState, Digest)>) -> Option<Slot> {
        let mut counts = self.counts();
        let count = counts.get(&subject).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        counts.insert(subject.clone(), count + 1);
        Some(Slot(Arc::new(Taken { subject, requests: self.clone(), key })))
    }

    /// No code runs under this lock, so a poisoned one still holds whole data.
    fn counts(&self) -> MutexGuard<'_, HashMap<Subject, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Whether the key of the request opens nothing any more.
    pub async fn is_revoked(&self) -> bool {
        match &self.0.key {
            Some((state, digest)) => {
                state.ledger.keyring.is_revoked(state.engine.ports(), digest).await
            }
            None => false,
        }
    }

    /// Ends when the key of the request opens nothing any more: never, if it brought none that may be
    /// revoked.
    pub async fn revoked(&self) {
        match &self.0.key {
            Some((state, digest)) => {
                state.ledger.keyring.revoked(state.engine.ports(), digest).await;
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut counts = self.requests.counts();
        if let Some(count) = counts.get_mut(&self.subject) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.subject);
            }
        }
    }
}

/// Keeps a request open until its answer was sent, or its key was revoked. An answer that lies ready
/// is as good as sent.
pub(super) fn hold(slot: Option<Slot>, answer: Response) -> Response {
    let is_ready = answer.body().size_hint().exact().is_some();
    let Some(slot) = slot.filter(|_| !is_ready) else { return answer };
    answer.map(|body| {
        let revoked = Box::pin(async move { slot.revoked().await });
        Body::from_stream(body.into_data_stream().take_until(revoked))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Subject {
        Subject::Key(id.to_owned())
    }

    #[test]
    fn a_caller_has_so_many_at_once() {
        let requests = OpenRequests::new(2);
        let first = requests.open(key("a"), None).unwrap();
        let kept = first.clone();
        let _second = requests.open(key("a"), None).unwrap();
        assert!(requests.open(key("a"), None).is_none());
        assert!(requests.open(key("b"), None).is_some());
        drop(first);
        assert!(requests.open(key("a"), None).is_none(), "a clone keeps it open");
        drop(kept);
        assert!(requests.open(key("a"), None).is_some());
    }

    #[test]
    fn callers_without_requests_are_forgotten() {
        let requests = OpenRequests::new(1);
        drop(requests.open(key("a"), None));
        assert!(requests.counts().is_empty());
    }

    #[tokio::test]
    async fn a_stream_is_open_until_it_ends() {
        let requests = OpenRequests::new(1);
        let (send, pieces) = tokio::sync::mpsc::channel::<Result<&str, std::io::Error>>(1);
        let pieces = futures::stream::unfold(pieces, |mut pieces| async move {
            Some((pieces.recv().await?, pieces))
        });
        let answer = hold(requests.open(key("a"), None), Response::new(Body::from_stream(pieces)));
        let mut pieces = answer.into_body().into_data_stream();
        send.send(Ok("piece")).await.unwrap();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "piece");
        assert!(requests.open(key("a"), None).is_none());
        drop(pieces);
        assert!(requests.open(key("a"), None).is_some());

        let _ready = hold(requests.open(key("a"), None), Response::new(Body::from("ready")));
        assert!(requests.open(key("a"), None).is_some());
    }
}
