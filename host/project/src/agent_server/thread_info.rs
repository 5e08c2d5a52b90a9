//! The settings of a thread that all its responses and streams share.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::Write;
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};

use crate::agent_server::document::Checkpoint;
use crate::agent_server::id::{checkpoint_uuid, input_uuid, namespace_text};
use crate::agent_server::message;

/// The ids of a thread and its channels with messages, from which responses and streams derive
/// addresses of checkpoints and messages.
#[derive(Clone, Debug)]
pub struct ThreadInfo {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Thread from which the ids of checkpoints are derived. It differs from `thread` only for
    /// copies.
    pub origin: ThreadId,
    /// Channels of the graph and its subgraphs that contain messages.
    pub channels: BTreeSet<String>,
}

impl ThreadInfo {
    /// Returns the address of a checkpoint.
    pub fn checkpoint(&self, namespace: &Namespace, id: CheckpointId) -> Checkpoint {
        Checkpoint { checkpoint_id: Some(self.checkpoint_id(id)), ..self.place(namespace) }
    }

    /// Returns the id of a checkpoint.
    pub fn checkpoint_id(&self, id: CheckpointId) -> String {
        checkpoint_uuid(&self.origin, id).to_string()
    }

    /// Returns the address of the state before the input that made a checkpoint.
    pub fn input(&self, namespace: &Namespace, made: CheckpointId) -> Checkpoint {
        let id = input_uuid(&self.origin, made).to_string();
        Checkpoint { checkpoint_id: Some(id), ..self.place(namespace) }
    }

    /// Returns the address of the parent of checkpoint `made`, as clients see it: the state before
    /// the input if an input made the checkpoint, or else the checkpoint `parent`. Returns `None` if
    /// the checkpoint is the first of its graph and no input made it.
    pub fn parent(
        &self,
        namespace: &Namespace,
        made: CheckpointId,
        source: CheckpointSource,
        parent: Option<CheckpointId>,
    ) -> Option<Checkpoint> {
        match source {
            CheckpointSource::Input => Some(self.input(namespace, made)),
            _ => parent.map(|id| self.checkpoint(namespace, id)),
        }
    }

    /// Returns the address of a graph, without a checkpoint id.
    pub fn place(&self, namespace: &Namespace) -> Checkpoint {
        Checkpoint {
            thread_id: self.thread.to_string(),
            checkpoint_ns: namespace_text(namespace),
            checkpoint_id: None,
            checkpoint_map: None,
        }
    }

    /// Converts channel values. Messages get the form of the Agent Server API.
    pub fn values(&self, state: &Value) -> Value {
        let Value::Object(state) = state else { return state.clone() };
        let shown = state.iter().map(|(name, value)| (name.clone(), self.value(name, value)));
        Value::Object(shown.collect())
    }

    /// Converts the value of one channel.
    pub fn value(&self, channel: &str, value: &Value) -> Value {
        if self.channels.contains(channel) { message::to_wire_all(value) } else { value.clone() }
    }

    /// Converts the writes of a task to an object whose keys are channels. Returns an array of such
    /// objects, in order, if the task wrote to a channel more than once; `null` if there are no
    /// writes.
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

    /// Returns the same as [`writes`](Self::writes), but an empty object if there are no writes.
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
        let thread_info = ThreadInfo { origin: thread.clone(), thread, channels };
        assert_eq!(thread_info.writes(&[]), Value::Null);
        let two = [write("a", json!(1)), write("b", json!(2))];
        assert_eq!(thread_info.writes(&two), json!({ "a": 1, "b": 2 }));
        let again = [write("a", json!(1)), write("b", json!(2)), write("a", json!(3))];
        assert_eq!(thread_info.writes(&again), json!([{ "a": 1, "b": 2 }, { "a": 3 }]));
        let talk = [write("talk", json!([{ "role": "user", "content": "hi" }]))];
        assert_eq!(thread_info.writes(&talk)["talk"][0]["type"], "human");
    }
}
