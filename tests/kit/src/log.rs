//! Captured log lines of the code under test.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber};

/// The captured log lines of one thread, of every level. The tasks of a current-thread runtime log
/// on this thread, too. Clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lines: Mutex<Vec<String>>,
    more: Notify,
}

impl Log {
    /// Captures the log lines of this thread until the guard is dropped.
    pub fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let guard = set_default(log.clone());
        (log, guard)
    }

    /// Returns the lines so far: the level and all fields of each, such as `WARN message=too much
    /// server="a"`.
    pub fn lines(&self) -> Vec<String> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line that contains `part`, and returns the first one.
    pub async fn line(&self, part: &str) -> String {
        loop {
            // Registers before the search, so that no line in between is missed.
            let more = self.0.more.notified();
            if let Some(line) = self.lines().into_iter().find(|line| line.contains(part)) {
                return line;
            }
            more.await;
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        self.0.more.notify_waiters();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
