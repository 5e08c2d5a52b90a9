//! Calls of tools as events.
//!
//! The journal tells which call of the model it was only when the tool has answered. What was asked
//! for and has not begun yet tells before that; a guess between two calls of one tool at the same
//! time may be wrong, but each of them begins and ends once.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::event::{CallStarted, Called, Event, EventKind, TaskFinished};
use wattle_graph::id::{Namespace, TaskId};

use crate::wire::lens::Lens;

/// The host call that calls a tool.
const TOOL_CALL: &str = "tools.call";

/// What was asked for and has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools {
    asked: BTreeMap<Namespace, Vec<Asked>>,
    /// Calls at work, by their place in the log.
    begun: BTreeMap<(TaskId, u32), String>,
}

/// A call that a model asked for.
#[derive(Clone, Debug)]
struct Asked {
    id: String,
    name: String,
    arguments: Value,
    has_begun: bool,
}

impl Tools {
    /// What an event says of calls.
    pub(super) fn take(&mut self, event: &Event, lens: &Lens) -> Vec<Value> {
        match &event.kind {
            EventKind::CallStarted(started) => self.begin(event, started).into_iter().collect(),
            EventKind::Called(called) => self.end(event, called),
            EventKind::TaskFinished(finished) => {
                self.hear(event, finished, lens);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The call of a model inside of which a nested graph runs, if it is one.
    pub(super) fn around(&self, namespace: &Namespace) -> Option<&str> {
        let level = namespace.as_str().rsplit('|').next()?;
        let mut place = level.split_once(':')?.1.split('.').skip(1);
        let call = place.next()?.parse().ok()?;
        // A graph that the node itself started has the place of that alone.
        place.next()?;
        self.begun.get(&(namespace.task()?, call)).map(String::as_str)
    }

    fn begin(&mut self, event: &Event, started: &CallStarted) -> Option<Value> {
        if started.function != TOOL_CALL || !started.scope.is_empty() {
            return None;
        }
        let name = own_name(&started.summary);
        let asked = self.asked.get_mut(&event.namespace)?;
        let asked = asked.iter_mut().find(|asked| {
            !asked.has_begun && (asked.name == name || asked.name == started.summary)
        })?;
        asked.has_begun = true;
        self.begun.insert((started.task.clone(), started.call), asked.id.clone());
        Some(began(&asked.id, name, &asked.arguments))
    }

    fn end(&mut self, event: &Event, called: &Called) -> Vec<Value> {
        if called.function != TOOL_CALL || !called.scope.is_empty() {
            return Vec::new();
        }
        self.begun.remove(&(called.task.clone(), called.call));
        let of = |name: &str| called.request.get(name);
        let id = of("call_id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let (Some(id), Some(tool)) = (id, of("tool").and_then(Value::as_str)) else {
            return Vec::new();
        };
        let mut asked = self.asked.get_mut(&event.namespace).into_iter().flatten();
        let asked = asked.find(|asked| asked.id == id);
        let has_begun = asked.is_some_and(|asked| std::mem::replace(&mut asked.has_begun, true));
        let arguments = of("arguments").unwrap_or(&Value::Null);
        let begin = (!has_begun).then(|| began(id, own_name(tool), arguments));
        begin.into_iter().chain([ended(called, id)]).collect()
    }

    /// Takes note of what models ask for, and of what is answered.
    fn hear(&mut self, event: &Event, finished: &TaskFinished, lens: &Lens) {
        let asked = self.asked.entry(event.namespace.clone()).or_default();
        let writes = finished.writes.iter();
        for write in writes.filter(|write| lens.channels.contains(write.channel.as_str())) {
            let messages =
                write.value.as_array().map_or(std::slice::from_ref(&write.value), |it| it);
            for message in messages {
                let calls = message.get("tool_calls").and_then(Value::as_array);
                asked.extend(calls.into_iter().flatten().filter_map(Asked::read));
                let answered = message.get("tool_call_id").and_then(Value::as_str);
                asked.retain(|asked| Some(asked.id.as_str()) != answered);
            }
        }
    }
}

impl Asked {
    fn read(call: &Value) -> Option<Self> {
        Some(Self {
            id: call.get("id")?.as_str()?.to_owned(),
            name: call.get("name")?.as_str()?.to_owned(),
            arguments: call.get("arguments").cloned().unwrap_or_default(),
            has_begun: false,
        })
    }
}

/// A tool's name without its plugin's.
fn own_name(tool: &str) -> &str {
    tool.rsplit('/').next().unwrap_or(tool)
}

fn began(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "event": "tool-started", "tool_call_id": id, "tool_name": name, "input": arguments })
}

fn ended(called: &Called, id: &str) -> Value {
    let error =
        |message: String| json!({ "event": "tool-error", "tool_call_id": id, "message": message });
    match &called.result {
        Err(failure) => error(failure.message.clone()),
        Ok(answer) if answer.get("is_error") == Some(&Value::Bool(true)) => error(text(answer)),
        Ok(answer) => {
            let data = answer.get("structured").filter(|data| !data.is_null()).cloned();
            let output = data.unwrap_or_else(|| text(answer).into());
            json!({ "event": "tool-finished", "tool_call_id": id, "output": output })
        }
    }
}

fn text(answer: &Value) -> String {
    match answer.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        _ => String::new(),
    }
}
