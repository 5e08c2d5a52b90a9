//! Host calls in an event log, with start and result together.
//!
//! An audit trail has two rows for a call, and the first one often needs the result, too. A call
//! can also lose its result, because its run ended or the host was started again. [`pairs`] gives
//! each call both of its items and stops before a pending call, so that a
//! [`Projection`](super::Projection) applies both at once:
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

/// The items of a log up to the first pending call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs<'a> {
    /// The items in the order of the log.
    pub items: Vec<Item<'a>>,
    /// Sequence number of the last event of the items; 0 if there is none.
    pub last: u64,
}

/// What happened to a call after its start.
enum Fate<'a> {
    Ended(&'a Called),
    /// The call can get no result since this event.
    Lost(&'a Event),
    Pending,
}

/// Returns the items of consecutive events. Calls for which `is_paired` returns false are other
/// events, and are not waited for. The same events give the same items, also in several parts, each
/// of which begins after the last event of the part before.
pub fn pairs(events: &[Event], is_paired: impl Fn(&CallKind) -> bool) -> Pairs<'_> {
    let mut pairs = Pairs::default();
    for (index, event) in events.iter().enumerate() {
        match &event.kind {
            EventKind::CallStarted(call) if is_paired(&call.kind) => {
                let item = match fate(call, &events[index + 1..]) {
                    Fate::Ended(called) => Item::Started { event, called },
                    Fate::Lost(end) => Item::Lost { event, call, end },
                    Fate::Pending => return pairs,
                };
                pairs.items.push(item);
            }
            EventKind::Called(called) if is_paired(&called.kind) => {
                if !has_start(called, &events[..index]) {
                    pairs.items.push(Item::Started { event, called });
                }
                pairs.items.push(Item::Ended { event, called });
            }
            _ => pairs.items.push(Item::Other(event)),
        }
        pairs.last = event.seq;
    }
    pairs
}

fn fate<'a>(call: &CallStarted, later: &'a [Event]) -> Fate<'a> {
    for event in later {
        match &event.kind {
            EventKind::Called(called) if is_result_of(called, call) => return Fate::Ended(called),
            EventKind::CallStarted(again)
                if (&again.task, &again.scope, again.call)
                    == (&call.task, &call.scope, call.call) =>
            {
                return Fate::Lost(event);
            }
            EventKind::RunEnded(_) | EventKind::RunStarted(_) => return Fate::Lost(event),
            _ => {}
        }
    }
    Fate::Pending
}

fn has_start(called: &Called, earlier: &[Event]) -> bool {
    earlier.iter().rev().any(|event| match &event.kind {
        EventKind::CallStarted(call) => is_result_of(called, call),
        _ => false,
    })
}

fn is_result_of(called: &Called, call: &CallStarted) -> bool {
    (&called.task, &called.scope, called.call) == (&call.task, &call.scope, call.call)
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
        ];
        let (whole, _) = read(&events(1, &log));
        for cut in 0..log.len() {
            let (first, last) = read(&events(1, &log[..cut]));
            let (second, _) = read(&events(last + 1, &log[last as usize..]));
            assert_eq!([first, second].concat(), whole, "cut at {cut}");
        }
    }
}
