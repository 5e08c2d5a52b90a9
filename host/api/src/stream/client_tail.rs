//! Reads the log of a thread for one client.
//!
//! A [`Tail`] reads the log at the pace of the client. `ClientTail` adds the handling of the
//! connection: a shutdown of the host ends the stream, an idle stream gets heartbeats, and the
//! reader counts as a client of its run.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::caller_id::CallerId;
use wattle_run::hostcall::runs::RunRef;
use wattle_run::tail::{self, Tail, TailQuery, Until};

use crate::stream::disconnect::DisconnectGuard;
use crate::stream::parts::StreamParts;

/// Default interval without an event after which a heartbeat is sent. Proxies close idle
/// connections after about 30 seconds.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Selects the events to read.
#[derive(Clone, Debug)]
pub struct TailRequest {
    /// Caller of the request, in whose turns long events are encoded.
    pub owner: CallerId,
    /// Thread whose log is read.
    pub thread: ThreadId,
    /// Only events of this run; `None` for all.
    pub run: Option<RunId>,
    /// Only events after this sequence number.
    pub after: u64,
    /// Condition that ends the stream. A shutdown of the host and the deletion of the thread always
    /// end it.
    pub until: Until,
    /// Policy for the run when its last client disconnects. With `None`, the reader does not count
    /// as a client of the run.
    pub disconnect_policy: Option<DisconnectPolicy>,
}

/// The policy for a run whose last client disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisconnectPolicy {
    /// Time without a client after which the run is cancelled; `None` lets the run continue.
    pub cancel_after: Option<Duration>,
}

/// The next item of a stream.
pub(super) enum ClientTailItem {
    /// An event.
    Event(Arc<Event>),
    /// No event for the heartbeat interval.
    Heartbeat,
    /// Error that ends the stream: the log cannot be read. The run may still be running.
    ReadFailed(Failure),
}

/// Reads a log for a client.
pub(super) struct ClientTail {
    thread: ThreadId,
    tail: Tail,
    stopping: watch::Receiver<bool>,
    /// Interval without an event after which a heartbeat is sent. A heartbeat keeps the connection
    /// open through proxies, and detects a disconnected client.
    heartbeat: Duration,
    disconnect_guard: Option<DisconnectGuard>,
}

impl ClientTail {
    pub(super) fn new(parts: &StreamParts, request: TailRequest, heartbeat: Duration) -> Self {
        let TailRequest { thread, run, after, until, disconnect_policy, .. } = request;
        let disconnect_guard = disconnect_policy.zip(run.clone()).map(|(policy, run)| {
            let run = RunRef { thread: thread.clone(), run };
            DisconnectGuard::new(
                parts.run_clients.clone(),
                parts.engine.clone(),
                parts.stopping.clone(),
                run,
                policy.cancel_after,
            )
        });
        let query = TailQuery { thread: thread.clone(), run, after, until };
        let tail = parts.engine.tail(query);
        Self { thread, tail, stopping: parts.stopping.clone(), heartbeat, disconnect_guard }
    }

    /// Returns the next item; `None` at the end of the stream. [`ClientTailItem::ReadFailed`] is
    /// the last item.
    pub(super) async fn next(&mut self) -> Option<ClientTailItem> {
        let item = self.read_next().await;
        let is_over = match &item {
            Some(ClientTailItem::Event(event)) => matches!(event.kind, EventKind::RunEnded(_)),
            Some(ClientTailItem::Heartbeat | ClientTailItem::ReadFailed(_)) => false,
            None => true,
        };
        if let Some(guard) = self.disconnect_guard.as_mut().filter(|_| is_over) {
            guard.disarm();
        }
        item
    }

    async fn read_next(&mut self) -> Option<ClientTailItem> {
        loop {
            match self.tail.next().await {
                Ok(tail::TailItem::Event(event)) => return Some(ClientTailItem::Event(event)),
                Ok(tail::TailItem::CaughtUp) => {}
                Ok(tail::TailItem::Idle | tail::TailItem::Gone | tail::TailItem::Replaced) => {
                    return None;
                }
                Err(failure) => {
                    tracing::warn!(thread = %self.thread, error = %failure, "event stream aborted");
                    return Some(ClientTailItem::ReadFailed(failure));
                }
            }
            tokio::select! {
                has_grown = self.tail.wait(self.heartbeat) => if !has_grown {
                    return Some(ClientTailItem::Heartbeat);
                },
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
        }
    }
}
