//! The log of parts and events of responses that are left out.
//!
//! A part that cannot be read or kept is left out, and does not fail its response.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Maximum log messages about one provider. Further messages are dropped.
const MAX_NOTES: usize = 100;

/// Maximum characters of the type of a part in a log message.
const MAX_TYPE_CHARS: usize = 64;

/// Logs parts of the responses of one provider, once for each type and reason.
#[derive(Debug)]
pub(super) struct LeftOutLog {
    provider: String,
    logged: Mutex<HashSet<String>>,
}

impl LeftOutLog {
    pub(super) fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned(), logged: Mutex::default() }
    }

    /// Logs that a part of this type is left out.
    pub(super) fn log(&self, kind: &str, reason: &str) {
        let kind: String = kind.chars().take(MAX_TYPE_CHARS).collect();
        if self.is_first(format!("{kind}: {reason}")) {
            tracing::warn!(
                provider = %self.provider, kind = ?kind,
                "a part of the content of a response is left out: {reason}"
            );
        }
    }

    /// Logs that an event of a stream is left out because it is not JSON. Later ones are not logged.
    pub(super) fn log_event(&self, text: &str) {
        if self.is_first("event".to_owned()) {
            tracing::warn!(
                provider = %self.provider, ?text,
                "an event of a stream is left out: it is not JSON"
            );
        }
    }

    fn is_first(&self, note: String) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.len() < MAX_NOTES && logged.insert(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_is_logged_once_and_their_number_is_limited() {
        let log = LeftOutLog::new("p");
        assert!(log.is_first("video: too large".into()));
        assert!(!log.is_first("video: too large".into()));
        assert!(log.is_first("sound: too large".into()));
        let further = (0..MAX_NOTES).filter(|number| log.is_first(number.to_string()));
        assert_eq!(further.count(), MAX_NOTES - 2);
    }
}
