//! What one thread needs to be shown, the same for all of its documents and streams.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wattle_graph::event::Write;
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};

use crate::agent_server::document::Checkpoint;
use crate::agent_server::id::{checkpoint_uuid, input_uuid, namespace_text};
use crate::agent_server::message;

/// How one thread is shown.
#[derive(Clone, Debug)]
pub struct Lens {
    /// The thread.
    pub thread: ThreadId,
    /// What ids of its checkpoints derive from.
    pub origin: ThreadId,
    /// Channels that hold messages, of its graph and of those nested in it.
    pub channels: BTreeSet<String>,
}

impl Lens {
    /// The address of a checkpoint.
    pub fn checkpoint(&self, namespace: &Namespace, id: CheckpointId) -> Checkpoint {
        Checkpoint { checkpoint_id: Some(self.checkpoint_id(id)), ..self.place(namespace) }
    }

    /// The id of a checkpoint.
    pub fn checkpoint_id(&self, id: CheckpointId) -> String {
        checkpoint_uuid(&self.origin, id).to_string()
    }

    /// The address of the point before the input that made a checkpoint.
    pub fn input(&self, namespace: &Namespace, made: CheckpointId) -> Checkpoint {
        let id = input_uuid(&self.origin, made).to_string();
        Checkpoint { checkpoint_id: Some(id), ..self.place(namespace) }
    }

    /// The address of a graph, whatever its checkpoint.
    pub fn place(&self, namespace: &Namespace) -> Checkpoint {
        Checkpoint {
            thread_id: self.thread.to_string(),
            checkpoint_ns: namespace_text(namespace),
            checkpoint_id: None,
            checkpoint_map: None,
        }
    }

    /// Channel values, with messages in the form that clients know.
    pub fn values(&self, state: &Value) -> Value {
        let Value::Object(state) = state else { return state.clone() };
        let shown = state.iter().map(|(name, value)| (name.clone(), self.value(name, value)));
        Value::Object(shown.collect())
    }

    /// The value of one channel.
    pub fn value(&self, channel: &str, value: &Value) -> Value {
        if self.channels.contains(channel) { message::to_wire_all(value) } else { value.clone() }
    }

    /// What a task wrote: an object by channel; several, in order, if it wrote to one more than
    /// once; `null` if it wrote nothing.
    pub fn writes(&self, writes: &[Write]) -> Value {
        let mut objects: Vec<Map<String, Value>> = Vec::new();
        for write in writes {
            let channel = write.channel.as_str();
            let value = self.value(channel, &write.value);
            match objects.last_mut().filter(|object| !object.contains_key(channel)) {
                Some(object) => drop(object.insert(channel.to_owned(), value)),
                None => objects.push(Map::from_iter([(channel.to_owned(), value)])),
            }
        }
        match objects.len() {
            0 => Value::Null,
            1 => objects.remove(0).into(),
            _ => objects.into_iter().map(Value::Object).collect(),
        }
    }

    /// What a task wrote; an empty object if nothing.
    pub fn result(&self, writes: &[Write]) -> Value {
        match self.writes(writes) {
            Value::Null => Value::Object(Map::new()),
            written => written,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(channel: &str, value: Value) -> Write {
        Write { channel: channel.parse().unwrap(), value, overwrite: false }
    }

    #[test]
    fn writes_become_objects_by_channel() {
        let thread = ThreadId::new("t").unwrap();
        let channels = BTreeSet::from(["talk".to_owned()]);
        let lens = Lens { origin: thread.clone(), thread, channels };
        assert_eq!(lens.writes(&[]), Value::Null);
        let two = [write("a", json!(1)), write("b", json!(2))];
        assert_eq!(lens.writes(&two), json!({ "a": 1, "b": 2 }));
        let again = [write("a", json!(1)), write("b", json!(2)), write("a", json!(3))];
        assert_eq!(lens.writes(&again), json!([{ "a": 1, "b": 2 }, { "a": 3 }]));
        let talk = [write("talk", json!([{ "role": "user", "content": "hi" }]))];
        assert_eq!(lens.writes(&talk)["talk"][0]["type"], "human");
    }
}
