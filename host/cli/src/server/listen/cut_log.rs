//! Log messages about rejected and closed connections, at most one per reason and period.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use wattle_api::traffic::CutReason;

use super::limits::NOTE_PERIOD;

/// The time of the last message of each reason.
#[derive(Default)]
pub(super) struct CutLog(Mutex<HashMap<&'static str, LastMessage>>);

struct LastMessage {
    at: Instant,
    /// Number of connections that were rejected or closed for the same reason since the last
    /// message. No messages were logged for these connections.
    suppressed: u64,
}

impl CutLog {
    /// Logs a message, unless a message with this reason was logged within [`NOTE_PERIOD`].
    pub(super) fn log(&self, cut: CutReason, from: SocketAddr) {
        if matches!(cut, CutReason::IdleTimeout | CutReason::Shutdown) {
            tracing::debug!(%from, reason = cut.label(), "{}", describe(cut));
            return;
        }
        let Some(before) = self.due(cut) else {
            tracing::debug!(%from, reason = cut.label(), "refused or closed a connection");
            return;
        };
        tracing::warn!(
            reason = cut.label(),
            %from,
            before,
            "{}; `before` counts those since the last such message",
            describe(cut)
        );
    }

    /// Returns the number of connections since the last message if a new message is due, or `None`.
    fn due(&self, cut: CutReason) -> Option<u64> {
        // Poisoning is ignored: no code that holds the lock can panic.
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let Some(message) = messages.get_mut(cut.label()) else {
            messages.insert(cut.label(), LastMessage { at: now, suppressed: 0 });
            return Some(0);
        };
        if now < message.at + NOTE_PERIOD {
            message.suppressed += 1;
            return None;
        }
        message.at = now;
        Some(std::mem::take(&mut message.suppressed))
    }
}

fn describe(cut: CutReason) -> &'static str {
    match cut {
        CutReason::HeadTimeout => {
            "the head of a request did not arrive within `server.connections.head_timeout`"
        }
        CutReason::WriteTimeout => {
            "a client did not read its response within `server.connections.stall_timeout`"
        }
        CutReason::Evicted => {
            "a connection without a request was closed to make room for a new one"
        }
        CutReason::ConnectionLimit => {
            "a connection was refused: `server.connections` allows no more"
        }
        CutReason::IdleTimeout => "closed an idle connection",
        CutReason::Shutdown => "the head of a request was incomplete when the host stopped",
        CutReason::BodyTimeout
        | CutReason::RequestLimit
        | CutReason::BodyMemory
        | CutReason::ResponseMemory
        | CutReason::RateLimit
        | CutReason::BodySize => "a connection was closed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_reason_has_one_message_per_period() {
        let log = CutLog::default();
        assert_eq!(log.due(CutReason::HeadTimeout), Some(0));
        assert_eq!(log.due(CutReason::WriteTimeout), Some(0));
        assert_eq!(
            (log.due(CutReason::HeadTimeout), log.due(CutReason::HeadTimeout)),
            (None, None)
        );
        tokio::time::sleep(NOTE_PERIOD).await;
        assert_eq!(log.due(CutReason::HeadTimeout), Some(2));
        assert_eq!(log.due(CutReason::HeadTimeout), None);
    }
}
