//! Log messages about rejected and closed connections, at most one per reason and period.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use wattle_api::traffic::Cut;

use super::limits::NOTE_PERIOD;

/// The time of the last message of each reason.
#[derive(Default)]
pub(super) struct Notes(Mutex<HashMap<&'static str, Note>>);

struct Note {
    at: Instant,
    /// Number of connections since the last message.
    more: u64,
}

impl Notes {
    /// Logs a message, unless a message with this reason was logged within [`NOTE_PERIOD`].
    pub(super) fn note(&self, cut: Cut, from: SocketAddr) {
        if matches!(cut, Cut::Idle | Cut::Stop) {
            tracing::debug!(%from, reason = cut.label(), "{}", told(cut));
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
            told(cut)
        );
    }

    /// Returns the number of connections since the last message if a new message is due, or `None`.
    fn due(&self, cut: Cut) -> Option<u64> {
        // Poisoning is ignored: no code that can panic runs under the lock.
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let Some(note) = notes.get_mut(cut.label()) else {
            notes.insert(cut.label(), Note { at: now, more: 0 });
            return Some(0);
        };
        if now < note.at + NOTE_PERIOD {
            note.more += 1;
            return None;
        }
        note.at = now;
        Some(std::mem::take(&mut note.more))
    }
}

fn told(cut: Cut) -> &'static str {
    match cut {
        Cut::Head => {
            "the head of a request did not arrive within `server.connections.head_timeout`"
        }
        Cut::Stalled => {
            "a client did not read its response within `server.connections.stall_timeout`"
        }
        Cut::Room => "a connection without a request was closed to make room for a new one",
        Cut::Connections => "a connection was refused: `server.connections` allows no more",
        Cut::Idle => "closed an idle connection",
        Cut::Stop => "the head of a request was incomplete when the host stopped",
        Cut::Body | Cut::Requests | Cut::Bodies | Cut::Responses => "a connection was closed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_reason_has_one_message_per_period() {
        let notes = Notes::default();
        assert_eq!(notes.due(Cut::Head), Some(0));
        assert_eq!(notes.due(Cut::Stalled), Some(0));
        assert_eq!((notes.due(Cut::Head), notes.due(Cut::Head)), (None, None));
        tokio::time::sleep(NOTE_PERIOD).await;
        assert_eq!(notes.due(Cut::Head), Some(2));
        assert_eq!(notes.due(Cut::Head), None);
    }
}
