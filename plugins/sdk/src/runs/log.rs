//! The log of a thread: all of its events, and those of each run.

use serde_json::Value;

use crate::failure::{Failure, code};
use crate::json;
use crate::runs::{self, Event, EventKind, PAGE_EVENTS, RunEnded};

/// The events of one run, see [`by_run`].
#[derive(Debug, Clone, PartialEq)]
pub struct RunLog {
    /// Id of the run.
    pub id: String,
    /// Events in order, at least one.
    pub events: Vec<Event>,
}

impl RunLog {
    /// Returns the event that ended the run, with its content; `None` during the run.
    pub fn ended(&self) -> Option<(&Event, &RunEnded)> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunEnded(ended) => Some((event, ended)),
            _ => None,
        })
    }
}

/// Returns all events of a thread after a sequence number, or `None` if there is no such thread.
/// `read` converts each event. [`Event::read`] keeps all of its content; a function of the app can
/// omit large requests and outputs that the app does not use.
///
/// ```
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::runs::Event;
/// use wattle_plugin::testing::FakeHost;
///
/// let started = json!({"type": "run_started", "graph": "notes", "reason": "input"});
/// let ended = json!({"type": "run_ended", "status": "completed"});
/// let mut host = FakeHost::new();
/// for (kind, seq) in [started, ended].into_iter().zip(1..) {
///     let mut event = kind;
///     (event["seq"], event["at_ms"], event["run"]) = (json!(seq), json!(5), json!("run-7"));
///     host = host.event("thread-1", event);
/// }
/// let events = host.run(|| runs::all_events("thread-1", 0, Event::read))?.unwrap_or_default();
/// let logs = runs::by_run(events);
/// let (event, ended) = logs[0].ended().ok_or_else(|| Failure::internal("the run is active"))?;
/// assert_eq!((logs[0].id.as_str(), event.seq), ("run-7", 2));
/// assert_eq!(ended.status, "completed");
/// # Ok::<_, Failure>(())
/// ```
pub fn all_events(
    thread_id: &str,
    after: u64,
    mut read: impl FnMut(&Value) -> Result<Event, Failure>,
) -> Result<Option<Vec<Event>>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    let mut seen = after;
    loop {
        let page = match runs::events(thread_id, seen, PAGE_EVENTS) {
            Err(failure) if failure.code == code::NOT_FOUND => return Ok(None),
            page => page?,
        };
        if page.is_empty() {
            return Ok(Some(events));
        }
        for event in page {
            seen = json::from_value("the number of an event", &event["seq"])?;
            events.push(read(&event)?);
        }
    }
}

/// Groups consecutive events of a run, in the order of the log. A run whose events are interrupted
/// by those of another one has several groups.
pub fn by_run(events: Vec<Event>) -> Vec<RunLog> {
    let mut logs: Vec<RunLog> = Vec::new();
    for event in events {
        match logs.last_mut().filter(|log| log.id == event.run) {
            Some(log) => log.events.push(event),
            None => logs.push(RunLog { id: event.run.clone(), events: vec![event] }),
        }
    }
    logs
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{PAGE_EVENTS, all_events, by_run};
    use crate::failure::Failure;
    use crate::runs::{Event, EventKind};
    use crate::testing::FakeHost;

    /// Appends an event of a run to the thread `t`.
    fn add(host: FakeHost, seq: u64, run: &str, kind: &Value) -> FakeHost {
        let mut event = json!({"seq": seq, "at_ms": seq * 10, "run": run});
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        host.event("t", event)
    }

    fn custom() -> Value {
        json!({"type": "custom", "node": "n", "name": "x", "data": "long"})
    }

    #[test]
    fn log_is_read_to_its_end() {
        let count = u64::from(PAGE_EVENTS) * 2 + 1;
        let host = (1..=count).fold(FakeHost::new(), |it, seq| add(it, seq, "r", &custom()));
        for after in [0, 3, count - 1, count] {
            let events = host.run(|| all_events("t", after, Event::read)).unwrap().unwrap();
            let numbers = events.iter().map(|event| event.seq);
            assert!(numbers.eq(after + 1..=count), "after {after}");
        }
    }

    #[test]
    fn read_omits_content_and_refuses_what_is_no_event() {
        let host = add(FakeHost::new(), 1, "r", &custom());
        let short = |event: &Value| {
            Event::read(event).map(|event| Event { kind: EventKind::Other, ..event })
        };
        let events = host.run(|| all_events("t", 0, short)).unwrap().unwrap();
        assert_eq!((events[0].seq, &events[0].kind), (1, &EventKind::Other));
        let renumbered = |event: &Value| Event::read(event).map(|event| Event { seq: 0, ..event });
        let events = host.run(|| all_events("t", 0, renumbered)).unwrap().unwrap();
        assert_eq!(events.len(), 1);
        let refused = host.run(|| all_events("t", 0, |_| Err(Failure::invalid("no event"))));
        assert_eq!(refused.unwrap_err().message, "no event");
    }

    #[test]
    fn runs_end_with_their_last_event() {
        let ended = |status: &str| json!({"type": "run_ended", "status": status});
        let events =
            [("a", custom()), ("a", ended("interrupted")), ("b", custom()), ("b", custom())];
        let host = events
            .iter()
            .zip(1..)
            .fold(FakeHost::new(), |host, ((run, kind), seq)| add(host, seq, run, kind));
        let logs = by_run(host.run(|| all_events("t", 0, Event::read)).unwrap().unwrap());
        let shown = logs.iter().map(|log| {
            let ended = log.ended().map(|(event, ended)| (event.at_ms, ended.status.as_str()));
            (log.id.as_str(), log.events.len(), ended)
        });
        let expected = [("a", 2, Some((20, "interrupted"))), ("b", 2, None)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert!(by_run(Vec::new()).is_empty());
    }
}
