//! Buffers the deltas of a model's completion until they are written to the event log.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use wattle_graph::event::{EventKind, Streamed};
use wattle_graph::llm::Delta;

use crate::gate::task_gate::TaskGate;
use crate::ports::model::DeltaSink;

/// Minimum interval between two `streamed` events of one call. The interval is short enough for
/// fluent output, and bounds the number of events. The first delta is written immediately.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Buffer for deltas of a model. Adjacent deltas of one text or tool call are merged.
#[derive(Default)]
pub(crate) struct DeltaBuffer {
    buffered: Mutex<Vec<Delta>>,
    arrived: Notify,
}

impl DeltaBuffer {
    /// Locks the buffered deltas. No code that can panic runs under this lock.
    fn lock_buffered(&self) -> MutexGuard<'_, Vec<Delta>> {
        self.buffered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Delta> {
        std::mem::take(&mut *self.lock_buffered())
    }
}

impl DeltaSink for DeltaBuffer {
    fn push(&self, delta: Delta) {
        let mut waiting = self.lock_buffered();
        let rest = match waiting.last_mut() {
            Some(last) => last.join(delta),
            None => Some(delta),
        };
        waiting.extend(rest);
        drop(waiting);
        self.arrived.notify_one();
    }
}

/// Awaits `work`. Meanwhile, passes the deltas in `pieces` to `on_deltas` and, for a task, writes
/// them to the event log.
pub(crate) async fn forward_deltas<T>(
    work: impl Future<Output = T>,
    pieces: &DeltaBuffer,
    log: Option<(&Arc<TaskGate>, u32)>,
    on_deltas: impl Fn(&[Delta]),
) -> T {
    let mut work = pin!(work);
    let hand_on = async || {
        let deltas = pieces.take();
        if deltas.is_empty() {
            return;
        }
        on_deltas(&deltas);
        if let Some((task, call)) = log {
            task.log_deltas(call, deltas).await;
        }
    };
    let answer = loop {
        tokio::select! {
            answer = &mut work => break answer,
            () = pieces.arrived.notified() => {}
        }
        hand_on().await;
        tokio::select! {
            answer = &mut work => break answer,
            () = tokio::time::sleep(FLUSH_INTERVAL) => {}
        }
    };
    hand_on().await;
    answer
}

impl TaskGate {
    pub(super) async fn log_deltas(&self, call: u32, deltas: Vec<Delta>) {
        self.heartbeat.on_call();
        let restarts = deltas.iter().filter(|delta| matches!(delta, Delta::Restart)).count();
        self.journal.add_restarts(call, u32::try_from(restarts).unwrap_or(u32::MAX));
        self.log.push(EventKind::Streamed(Streamed {
            task: self.task.clone(),
            node: self.node.clone(),
            scope: self.scope.clone(),
            call,
            deltas,
        }));
        self.log.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: u32, name: Option<&str>, arguments: &str) -> Delta {
        let (id, name) = (name.map(|_| "id".to_owned()), name.map(str::to_owned));
        Delta::ToolCall { index, id, name, arguments: arguments.to_owned() }
    }

    fn text(text: &str) -> Delta {
        Delta::Text { text: text.to_owned() }
    }

    #[test]
    fn adjacent_deltas_are_merged() {
        let pieces = DeltaBuffer::default();
        let given = [
            text("a"),
            text("b"),
            Delta::Restart,
            text("c"),
            call(0, Some("add"), "{"),
            call(0, None, "}"),
            call(1, Some("add"), ""),
            call(0, None, "x"),
        ];
        for delta in given {
            pieces.push(delta);
        }
        let joined = [
            text("ab"),
            Delta::Restart,
            text("c"),
            call(0, Some("add"), "{}"),
            call(1, Some("add"), ""),
            call(0, None, "x"),
        ];
        assert_eq!(pieces.take(), joined);
        assert_eq!(pieces.take(), []);
    }
}
