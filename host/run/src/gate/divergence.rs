//! Divergences: a re-executed guest makes another call than its journal holds under the same
//! number.

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};

use crate::gate::unwind::Unwind;

/// Returns the divergence of a re-executed task, with both calls in its details. `journaled` is
/// null if the journal holds no call under the number.
pub(crate) fn divergence(call: u32, journaled: Value, now: Value) -> Unwind {
    let difference = match functions(&journaled, &now) {
        (Some(before), Some(now)) if before == now => {
            format!("the node calls `{now}` with another request than the journal holds")
        }
        (before, now) => {
            format!("the journal holds {}, and the node now calls {}", quoted(before), quoted(now))
        }
    };
    let message =
        format!("host call {call} diverges: {difference}; node code must be deterministic");
    let details = json!({ "call": call, "journal": journaled, "now": now });
    Unwind::Divergence(Failure::new(code::DIVERGENCE, message).with_details(details))
}

/// A divergence in a replay, whose code may differ from the recorded code on purpose.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplayDivergence {
    /// Number of the call.
    pub call: Option<u64>,
    /// Description of the difference.
    pub message: String,
    /// The call of the journal; null if there is none.
    pub journaled: Value,
    /// The call of the replay.
    pub now: Value,
}

impl ReplayDivergence {
    /// Reads the failure of a [`divergence`].
    pub(crate) fn of(failure: Failure) -> Self {
        let mut details = failure.details.unwrap_or_default();
        let mut take = |name: &str| details.get_mut(name).map(Value::take).unwrap_or_default();
        let (call, journaled, now) = (take("call").as_u64(), take("journal"), take("now"));
        let message = match functions(&journaled, &now) {
            (Some(before), Some(now)) if before == now => {
                format!("the code calls `{now}` with another request than the recorded run")
            }
            (None, now) => {
                format!("the code calls {}, and the recorded run made no call there", quoted(now))
            }
            (before, now) => format!(
                "the code calls {}, and the recorded run called {}",
                quoted(now),
                quoted(before)
            ),
        };
        Self { call, message, journaled, now }
    }
}

/// Returns the functions of both calls of a divergence.
fn functions<'v>(journaled: &'v Value, now: &'v Value) -> (Option<&'v str>, Option<&'v str>) {
    (journaled["function"].as_str(), now["function"].as_str())
}

fn quoted(function: Option<&str>) -> String {
    function.map_or_else(|| "no call".to_owned(), |function| format!("`{function}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages of a divergence: that of a re-execution, and that of a replay.
    fn messages(journaled: Value, now: Value) -> (String, String) {
        let Unwind::Divergence(failure) = divergence(3, journaled, now) else { unreachable!() };
        (failure.message.clone(), ReplayDivergence::of(failure).message)
    }

    fn call(function: &str, request: &str) -> Value {
        json!({ "function": function, "request": request })
    }

    #[test]
    fn a_request_that_differs_is_not_described_as_another_function() {
        let (again, replay) = messages(call("llm.complete", "a"), call("llm.complete", "b"));
        assert_eq!(
            again,
            "host call 3 diverges: the node calls `llm.complete` with another request than the \
             journal holds; node code must be deterministic"
        );
        let other = "the code calls `llm.complete` with another request than the recorded run";
        assert_eq!(replay, other);
    }

    #[test]
    fn another_function_is_named_with_the_journaled_one() {
        let (again, replay) = messages(call("llm.complete", "a"), call("http.send", "a"));
        assert!(again.contains("holds `llm.complete`, and the node now calls `http.send`"));
        assert_eq!(
            replay,
            "the code calls `http.send`, and the recorded run called `llm.complete`"
        );
    }

    #[test]
    fn a_replay_keeps_the_call_and_both_requests() {
        let now = call("http.send", "a");
        let Unwind::Divergence(failure) = divergence(3, Value::Null, now.clone()) else {
            unreachable!()
        };
        let message = "the code calls `http.send`, and the recorded run made no call there";
        let expected = ReplayDivergence {
            call: Some(3),
            message: message.to_owned(),
            journaled: Value::Null,
            now,
        };
        assert_eq!(ReplayDivergence::of(failure), expected);
    }
}
