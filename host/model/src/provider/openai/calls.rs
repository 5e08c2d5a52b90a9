//! Requests for tools out of their pieces.
//!
//! The format numbers them, and services follow that in their own ways: no number at all, the
//! same number for all of them, everything at once, the pieces of two mixed.

use serde_json::{Map, Value};
use wattle_graph::llm::{Part, ToolCall};

use crate::sink::Sink;

/// Requests in one answer: far more than any host runs at once.
const MAX_CALLS: usize = 128;

/// The requests for tools of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// The number that the service gave it.
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// It was handed on; before its name is known it cannot be.
    shown: bool,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Bytes of all that was taken.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |call: &Call| call.name.len() + call.arguments.len();
        self.calls.iter().map(bytes).sum()
    }

    /// Takes one piece. `answer` is the id of the answer, from which missing ids are made.
    pub(super) fn take(
        &mut self,
        piece: &Value,
        answer: &str,
        sink: &Sink<'_>,
    ) -> Result<(), String> {
        let text = |field: &str| {
            piece.pointer(field).and_then(Value::as_str).filter(|text| !text.is_empty())
        };
        let number = piece.get("index").and_then(Value::as_u64);
        let (id, name) = (text("/id"), text("/function/name"));
        let arguments = match piece.pointer("/function/arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            // Some services send the document instead of its text.
            Some(document) => document.to_string(),
        };
        let index = match self.find(number, id, name) {
            Some(index) => index,
            None if self.calls.len() == MAX_CALLS => {
                return Err(format!("it asks for more than {MAX_CALLS} tools at once"));
            }
            None => {
                let id = id.map_or_else(|| made_up(answer, self.calls.len()), str::to_owned);
                self.calls.push(Call { number, id, ..Call::default() });
                self.calls.len() - 1
            }
        };
        self.calls[index].grow(index, name, &arguments, sink);
        Ok(())
    }

    /// The request that a piece goes on with; none if it begins one.
    fn find(&self, number: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        match (number, id) {
            // The same number with another id and a name is another request all the same.
            (Some(number), id) => last(&|call| call.number == Some(number)).filter(|index| {
                let call = &self.calls[*index];
                name.is_none() || call.name.is_empty() || id.is_none_or(|id| id == call.id)
            }),
            (None, Some(id)) => last(&|call| call.id == id),
            (None, None) if name.is_some() => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }

    /// All requests, complete. Arguments that are not JSON stay the text that they are, so that
    /// the tool's schema refuses them and the model is told.
    pub(super) fn parts(self) -> impl Iterator<Item = Part> {
        self.calls.into_iter().map(|call| {
            let text = call.arguments.trim();
            let arguments = if text.is_empty() {
                Value::Object(Map::new())
            } else {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
            };
            Part::ToolCall(ToolCall { id: call.id, name: call.name, arguments })
        })
    }
}

impl Call {
    fn grow(&mut self, index: usize, name: Option<&str>, arguments: &str, sink: &Sink<'_>) {
        // Some services repeat the name with every piece.
        if let Some(name) = name
            && self.name.is_empty()
        {
            name.clone_into(&mut self.name);
        }
        self.arguments.push_str(arguments);
        if self.shown {
            sink.arguments(index, arguments);
        } else if !self.name.is_empty() {
            self.shown = true;
            sink.call(index, &self.id, &self.name, &self.arguments);
        }
    }
}

fn made_up(answer: &str, index: usize) -> String {
    if answer.is_empty() { format!("call_{index}") } else { format!("{answer}-{index}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use wattle_graph::llm::Delta;
    use wattle_run::ports::model::Deltas;

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<Delta>>);

    impl Deltas for Kept {
        fn push(&self, delta: Delta) {
            self.0.lock().unwrap().push(delta);
        }
    }

    /// `(id, name, arguments)` of the calls that these pieces make.
    fn read(pieces: &[Value]) -> Vec<(String, String, Value)> {
        let kept = Kept::default();
        let sink = Sink::new(&kept);
        let mut calls = Calls::default();
        for piece in pieces {
            calls.take(piece, "a", &sink).unwrap();
        }
        let read: Vec<(String, String, Value)> = calls
            .parts()
            .filter_map(|part| match part {
                Part::ToolCall(call) => Some((call.id, call.name, call.arguments)),
                _ => None,
            })
            .collect();
        assert_eq!(shown(&kept.0.lock().unwrap()), read, "pieces add up to the whole");
        read
    }

    fn shown(deltas: &[Delta]) -> Vec<(String, String, Value)> {
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for delta in deltas {
            let Delta::ToolCall { index, id, name, arguments } = delta else { continue };
            if let (Some(id), Some(name)) = (id, name) {
                assert_eq!(*index as usize, calls.len());
                calls.push((id.clone(), name.clone(), String::new()));
            }
            calls[*index as usize].2.push_str(arguments);
        }
        let parsed = |text: String| match text.as_str() {
            "" => json!({}),
            text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        };
        calls.into_iter().map(|(id, name, text)| (id, name, parsed(text))).collect()
    }

    fn piece(number: Value, id: Value, name: Value, arguments: Value) -> Value {
        json!({ "index": number, "id": id, "function": { "name": name, "arguments": arguments } })
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.into(), name.into(), arguments)
    }

    #[test]
    fn pieces_find_their_request() {
        let none = Value::Null;
        let two = [call("x", "add", json!({"a": 1})), call("y", "save", json!({"b": "é"}))];
        let ordinary = [
            piece(json!(0), json!("x"), json!("add"), json!("")),
            piece(json!(0), none.clone(), none.clone(), json!("{\"a\":")),
            piece(json!(1), json!("y"), json!("save"), json!("{\"b\"")),
            piece(json!(0), none.clone(), none.clone(), json!("1}")),
            piece(json!(1), none.clone(), none.clone(), json!(":\"é\"}")),
        ];
        assert_eq!(read(&ordinary), two, "mixed");
        let unnumbered = [
            piece(none.clone(), json!("x"), json!("add"), json!("{\"a\":")),
            piece(none.clone(), none.clone(), none.clone(), json!("1}")),
            piece(none.clone(), json!("y"), json!("save"), json!("{\"b\":")),
            piece(none.clone(), json!("y"), none.clone(), json!("\"é\"}")),
        ];
        assert_eq!(read(&unnumbered), two, "without numbers");
        let same = [
            piece(json!(0), json!("x"), json!("add"), json!({"a": 1})),
            piece(json!(0), json!("y"), json!("save"), json!("{\"b\":\"\\u00e9\"}")),
        ];
        assert_eq!(read(&same), two, "all at once, with one number for both");
        let repeated = [
            piece(json!(0), json!("x"), json!("add"), json!("{")),
            piece(json!(0), json!("x"), json!("add"), json!("}")),
        ];
        assert_eq!(read(&repeated), [call("x", "add", json!({}))], "id and name repeated");
    }

    #[test]
    fn what_is_missing_is_made_up_and_what_is_broken_is_kept() {
        let none = Value::Null;
        let pieces = [
            piece(none.clone(), none.clone(), json!("now"), none.clone()),
            piece(none.clone(), none.clone(), json!("add"), json!("{\"a\": oops")),
        ];
        let expected = [call("a-0", "now", json!({})), call("a-1", "add", json!("{\"a\": oops"))];
        assert_eq!(read(&pieces), expected);
    }

    #[test]
    fn an_endless_answer_is_refused() {
        let kept = Kept::default();
        let sink = Sink::new(&kept);
        let mut calls = Calls::default();
        let outcome = (0..=MAX_CALLS).try_for_each(|number| {
            calls.take(&piece(json!(number), json!(null), json!("t"), json!("")), "", &sink)
        });
        assert!(outcome.unwrap_err().contains("128"));
    }
}
