//! Host calls in an event log, with start and result together.
//!
//! An audit trail has two rows for a call, and the first one often needs the result, too. A call
//! can also lose its result, because its run ended or the host was started again. [`pairs`] gives
//! each call both of its items and stops before a pending call, and before a call that overlaps it,
//! so that a [`Projection`](super::Projection) applies both at once:
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::projection::calls::{Item, pairs};
//! use wattle_plugin::runs::{CallKind, Event};
//!
//! let started = |seq: u64, call: u32| json!({
//!     "seq": seq, "at_ms": 7, "run": "r", "type": "call_started", "task": "t", "call": call,
//!     "function": "tools.call", "summary": "shop/find",
//! });
//! let called = json!({
//!     "seq": 2, "at_ms": 8, "run": "r", "type": "called", "task": "t", "node": "n", "call": 0,
//!     "function": "tools.call", "request": {}, "result": { "Ok": {} }, "duration_us": 5,
//! });
//! let log = [started(1, 0), called, started(3, 1)];
//! let events = log.iter().map(Event::read).collect::<Result<Vec<_>, _>>()?;
//!
//! let pairs = pairs(&events, CallKind::is_tool);
//! assert_eq!(pairs.last, 2, "the second call is pending");
//! let [Item::Started { called: begun, .. }, Item::Ended { called, .. }] = &pairs.items[..] else {
//!     panic!("{:?}", pairs.items)
//! };
//! assert_eq!(begun, called);
//! # Ok::<_, wattle_plugin::Failure>(())
//! ```

use std::collections::BTreeMap;

use crate::runs::{CallKind, CallStarted, Called, Event, EventKind};

/// An item of a log: an event, with the other event of its call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'a> {
    /// A call started that has a result. A call without a start in the log, such as one that was
    /// refused, starts with its result.
    Started {
        /// The start, or the result if there is no start.
        event: &'a Event,
        /// The call with its result.
        called: &'a Called,
    },
    /// A call returned its result. Its start is an earlier item.
    Ended {
        /// The event of the result.
        event: &'a Event,
        /// The call with its result.
        called: &'a Called,
    },
    /// A call started that can get no result.
    Lost {
        /// The start.
        event: &'a Event,
        /// The call.
        call: &'a CallStarted,
        /// The event after which there is no result: the run ended or was recovered, or the call
        /// started again.
        end: &'a Event,
    },
    /// Another event, or an event of a call that is not paired.
    Other(&'a Event),
}

/// The items of a log up to the first pending call, or the first call that overlaps it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs<'a> {
    /// The items in the order of the log.
    pub items: Vec<Item<'a>>,
    /// Sequence number of the last event of the items; 0 if there is none.
    pub last: u64,
}

/// Task, scope and number of a call.
type CallId<'a> = (&'a str, &'a [u32], u32);

/// What an event is to the calls of a log.
enum Role<'a> {
    /// A start whose call has neither ended nor been lost.
    Pending,
    /// A start, with the result of its call and the index of the result.
    Ended(&'a Called, usize),
    /// A start, with the event since which its call can get no result.
    Lost(&'a CallStarted, &'a Event),
    /// A result.
    Result { called: &'a Called, has_start: bool },
    /// Another event.
    Other,
}

/// Returns the items of consecutive events. Calls for which `is_paired` returns false are other
/// events, and are not waited for. The same events give the same items, even in several parts, each
/// of which begins after the last event of the part before. A part therefore contains a call from
/// its start to its result, and the items stop before the first call that overlaps a pending one.
pub fn pairs(events: &[Event], is_paired: impl Fn(&CallKind) -> bool) -> Pairs<'_> {
    let roles = roles(events, is_paired);
    let is_pending = |role: &Role<'_>| matches!(role, Role::Pending);
    let mut complete = roles.iter().position(is_pending).unwrap_or(roles.len());
    for start in (0..complete).rev() {
        if matches!(roles[start], Role::Ended(_, end) if end >= complete) {
            complete = start;
        }
    }
    let mut pairs = Pairs::default();
    for (event, role) in events[..complete].iter().zip(&roles) {
        match *role {
            Role::Ended(called, _) => pairs.items.push(Item::Started { event, called }),
            Role::Lost(call, end) => pairs.items.push(Item::Lost { event, call, end }),
            Role::Result { called, has_start } => {
                if !has_start {
                    pairs.items.push(Item::Started { event, called });
                }
                pairs.items.push(Item::Ended { event, called });
            }
            Role::Pending | Role::Other => pairs.items.push(Item::Other(event)),
        }
        pairs.last = event.seq;
    }
    pairs
}

/// Returns the role of each event.
fn roles(events: &[Event], is_paired: impl Fn(&CallKind) -> bool) -> Vec<Role<'_>> {
    let mut roles: Vec<Role<'_>> = Vec::with_capacity(events.len());
    // The starts of calls without a result so far, with their indices.
    let mut open: BTreeMap<CallId<'_>, (&CallStarted, usize)> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        let role = match &event.kind {
            EventKind::CallStarted(call) => {
                let key = (call.task.as_str(), call.scope.as_slice(), call.call);
                if let Some((before, start)) = open.remove(&key) {
                    roles[start] = Role::Lost(before, event);
                }
                if is_paired(&call.kind) {
                    open.insert(key, (call, index));
                    Role::Pending
                } else {
                    Role::Other
                }
            }
            EventKind::Called(called) => {
                let key = (called.task.as_str(), called.scope.as_slice(), called.call);
                let start = open.remove(&key);
                if let Some((_, start)) = start {
                    roles[start] = Role::Ended(called, index);
                }
                if is_paired(&called.kind) {
                    Role::Result { called, has_start: start.is_some() }
                } else {
                    Role::Other
                }
            }
            EventKind::RunEnded(_) | EventKind::RunStarted(_) => {
                for (call, start) in std::mem::take(&mut open).into_values() {
                    roles[start] = Role::Lost(call, event);
                }
                Role::Other
            }
            _ => Role::Other,
        };
        roles.push(role);
    }
    roles
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Item, pairs};
    use crate::runs::Event;

    /// Returns the events with sequence numbers from `first`.
    fn events(first: u64, kinds: &[Value]) -> Vec<Event> {
        let number = |(kind, seq): (&Value, u64)| {
            let mut event = kind.clone();
            event["seq"] = json!(seq);
            event["at_ms"] = json!(seq * 10);
            event["run"] = json!("r");
            Event::read(&event).unwrap()
        };
        kinds.iter().zip(first..).map(number).collect()
    }

    fn started(scope: &[u32], call: u32, function: &str) -> Value {
        json!({"type": "call_started", "task": "t", "scope": scope, "call": call,
               "function": function, "summary": "s"})
    }

    fn called(scope: &[u32], call: u32, function: &str) -> Value {
        json!({"type": "called", "task": "t", "node": "n", "scope": scope, "call": call,
               "function": function, "request": {}, "result": {"Ok": {}}, "duration_us": 7})
    }

    fn other() -> Value {
        json!({"type": "custom", "node": "n", "name": "found", "data": {}})
    }

    fn run_started(reason: &str) -> Value {
        json!({"type": "run_started", "graph": "g", "reason": reason})
    }

    fn run_ended() -> Value {
        json!({"type": "run_ended", "status": "cancelled"})
    }

    /// Returns the items as texts: what they are, and the sequence numbers of their events.
    fn read(events: &[Event]) -> (Vec<String>, u64) {
        let pairs = pairs(events, |kind| kind.is_model() || kind.is_tool());
        let text = |item: &Item<'_>| match item {
            Item::Started { event, .. } => format!("started {}", event.seq),
            Item::Ended { event, .. } => format!("ended {}", event.seq),
            Item::Lost { event, end, .. } => format!("lost {} at {}", event.seq, end.seq),
            Item::Other(event) => format!("other {}", event.seq),
        };
        (pairs.items.iter().map(text).collect(), pairs.last)
    }

    #[test]
    fn calls_are_paired_up_to_the_first_pending_one() {
        let start = |call: u32| started(&[], call, "tools.call");
        let end = |call: u32| called(&[], call, "tools.call");
        let model = [started(&[0], 0, "llm.complete"), called(&[0], 0, "llm.complete")];
        let [model_starts, model_ends] = model;
        for (log, items, last) in [
            (vec![], "", 0),
            (vec![run_started("input"), other(), run_ended()], "other 1, other 2, other 3", 3),
            (vec![start(0), end(0)], "started 1, ended 2", 2),
            // A call batch.
            (vec![start(0), start(1), end(1), end(0)], "started 1, started 2, ended 3, ended 4", 4),
            // A call of the tool with the number of the tool's call.
            (
                vec![start(0), model_starts, model_ends, end(0)],
                "started 1, started 2, ended 3, ended 4",
                4,
            ),
            (vec![other(), start(0), other()], "other 1", 1),
            (vec![start(0), end(0), start(1), other()], "started 1, ended 2", 2),
            // Calls that overlap a pending one, directly and by another call.
            (vec![other(), start(0), start(1), end(0)], "other 1", 1),
            (vec![start(0), start(1), end(0), start(2), end(1)], "", 0),
            (vec![start(0), run_ended()], "lost 1 at 2, other 2", 2),
            (vec![start(0), start(0), end(0)], "lost 1 at 2, started 2, ended 3", 3),
            (
                vec![start(0), run_started("recovery"), start(0), end(0)],
                "lost 1 at 2, other 2, started 3, ended 4",
                4,
            ),
            // A call that was refused before it started.
            (vec![end(0)], "started 1, ended 1", 1),
            // Calls that are not paired.
            (vec![started(&[], 0, "sql.query")], "other 1", 1),
            (vec![called(&[], 0, "http.send")], "other 1", 1),
        ] {
            let (found, found_last) = read(&events(1, &log));
            assert_eq!((found.join(", ").as_str(), found_last), (items, last), "{log:?}");
        }
    }

    #[test]
    fn parts_of_a_log_give_the_items_of_the_whole_log() {
        let log = [
            run_started("input"),
            started(&[], 0, "tools.call"),
            other(),
            called(&[], 0, "tools.call"),
            called(&[], 1, "tools.call"),
            started(&[], 2, "llm.complete"),
            run_ended(),
            run_started("input"),
            // A call batch.
            started(&[], 3, "tools.call"),
            started(&[], 4, "tools.call"),
            called(&[], 3, "tools.call"),
            started(&[], 5, "tools.call"),
            called(&[], 5, "tools.call"),
            called(&[], 4, "tools.call"),
            run_ended(),
        ];
        let (whole, _) = read(&events(1, &log));
        for end in 0..log.len() {
            let (first, last) = read(&events(1, &log[..end]));
            let (second, _) = read(&events(last + 1, &log[last as usize..]));
            assert_eq!([first, second].concat(), whole, "divided at {end}");
        }
    }
}
