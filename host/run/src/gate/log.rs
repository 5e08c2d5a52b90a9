//! Log messages of guests: for the operator's log and, for a task, for the event log. A client gets
//! those of a node that it calls.
//!
//! A log call has no result. A message beyond a limit is truncated or dropped, and the guest
//! continues. Only a full log of the thread ends the guest, as it does at every other call that
//! makes the log grow.

use serde_json::Value;

use crate::gate::Gate;
use crate::gate::budget::LogAdmission;
use crate::gate::unwind::Unwind;
use crate::hostcall::log::LogMessage;
use crate::limit;
use crate::ports::Caller;
use crate::text::Escaped;

impl Gate {
    /// Writes a message to the operator's log and, for a task, to the event log. Messages beyond
    /// the budget are dropped; a warning about this replaces the first of them.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the log of the thread is full.
    pub async fn log(&self, message: LogMessage) -> Result<(), Unwind> {
        if let Some(task) = &self.task {
            task.check_log_size().await?;
        }
        self.push_log(message);
        self.flush_log().await
    }

    /// Writes a message like [`Gate::log`], without waiting. The caller calls
    /// [`Gate::flush_log`] before it lets the guest write [`limit::LOG_BUFFER_BYTES`] more.
    pub fn push_log(&self, message: LogMessage) {
        if let Some(task) = &self.task {
            task.heartbeat.on_call();
        }
        let message = message.truncate();
        if self.admit_log(message.bytes()) {
            let (level, message, fields) = message.into_parts();
            self.write_log(&level, message, fields);
        }
    }

    /// Returns true if so many messages are buffered that [`Gate::flush_log`] sends them to the
    /// store.
    pub fn is_log_flush_due(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.log.is_flush_due())
    }

    /// Sends the messages to the store if [`limit::LOG_BUFFER_BYTES`] of them are buffered. Waits
    /// while the store is behind, like every other call that makes the log grow.
    ///
    /// # Errors
    ///
    /// See [`Gate::log`].
    pub async fn flush_log(&self) -> Result<(), Unwind> {
        let Some(task) = self.task.as_ref().filter(|task| task.log.is_flush_due()) else {
            return Ok(());
        };
        task.check_log_size().await?;
        task.log.flush().await;
        Ok(())
    }

    /// Charges a message to the budget. Returns true if the message is to be written.
    pub(super) fn admit_log(&self, bytes: usize) -> bool {
        match self.budget.charge_log(bytes as u64) {
            LogAdmission::Granted => return true,
            LogAdmission::FirstDropped => {
                let last = format!(
                    "further log messages are dropped: a task or a web handler may write {} \
                     messages of {} bytes together",
                    limit::LOG_MESSAGES,
                    limit::LOG_MESSAGES_BYTES
                );
                self.write_log("warn", last, Value::Null);
            }
            LogAdmission::Dropped => {}
        }
        false
    }

    fn write_log(&self, level: &str, message: String, fields: Value) {
        let Caller { app, plugin, .. } = self.caller();
        let (text, shown) = (Escaped(&message), Escaped(&fields));
        match level {
            "error" => tracing::error!(%app, %plugin, fields = %shown, "{text}"),
            "warn" => tracing::warn!(%app, %plugin, fields = %shown, "{text}"),
            "trace" | "debug" => tracing::debug!(%app, %plugin, fields = %shown, "{text}"),
            _ => {
                let level = Escaped(level);
                tracing::info!(%app, %plugin, fields = %shown, %level, "{text}");
            }
        }
        match (&self.task, self.client_node()) {
            (Some(task), _) => task.log(level, message, fields),
            (None, Some(node)) => node.log(level, message, fields),
            (None, None) => {}
        }
    }
}

impl Drop for Gate {
    /// Logs for the operator how many messages were dropped. The gates of tools share the budget of
    /// the gate around them, and only the outermost gate logs the number. A failed attempt of a
    /// task drops its gate before the next attempt resets the budget.
    fn drop(&mut self) {
        let dropped = self.budget.dropped_logs();
        if self.depth == 0 && dropped > 0 {
            let Caller { app, plugin, .. } = self.caller();
            tracing::warn!(%app, %plugin, dropped, "log messages of the plugin were dropped");
        }
    }
}
