//! Buffers the deltas of a model's completion on their way to the event log.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use wattle_graph::event::{EventKind, Streamed};
use wattle_graph::llm::Delta;

use crate::gate::task::TaskSide;
use crate::ports::model::Deltas;

/// Minimum interval between two `streamed` events of one call. It keeps the output fluent and
/// bounds the number of events. The first delta is written immediately.
const INTERVAL: Duration = Duration::from_millis(50);

/// Buffer for deltas of a model. Adjacent deltas of one text or tool call are merged.
#[derive(Default)]
pub(crate) struct Pieces {
    waiting: Mutex<Vec<Delta>>,
    arrived: Notify,
}

impl Pieces {
    /// No code that can panic runs under this lock.
    fn waiting(&self) -> MutexGuard<'_, Vec<Delta>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Delta> {
        std::mem::take(&mut *self.waiting())
    }
}

impl Deltas for Pieces {
    fn push(&self, delta: Delta) {
        let mut waiting = self.waiting();
        let rest = match waiting.last_mut() {
            Some(last) => last.join(delta),
            None => Some(delta),
        };
        waiting.extend(rest);
        drop(waiting);
        self.arrived.notify_one();
    }
}

/// Awaits `work` and meanwhile forwards its deltas to `also` and, for a task, to the event log.
pub(crate) async fn answer_in_pieces<T>(
    work: impl Future<Output = T>,
    pieces: &Pieces,
    log: Option<(&Arc<TaskSide>, u32)>,
    also: impl Fn(&[Delta]),
) -> T {
    let mut work = pin!(work);
    let hand_on = async || {
        let deltas = pieces.take();
        if deltas.is_empty() {
            return;
        }
        also(&deltas);
        if let Some((task, call)) = log {
            task.streamed(call, deltas).await;
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
            () = tokio::time::sleep(INTERVAL) => {}
        }
    };
    hand_on().await;
    answer
}

impl TaskSide {
    pub(super) async fn streamed(&self, call: u32, deltas: Vec<Delta>) {
        self.alive.called();
        let restarts = deltas.iter().filter(|delta| matches!(delta, Delta::Restart)).count();
        self.journal.restart(call, u32::try_from(restarts).unwrap_or(u32::MAX));
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
        let pieces = Pieces::default();
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
