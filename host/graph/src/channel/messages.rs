//! The reducer `messages`, for an array of messages, which are objects with an `id`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Reduced;
use crate::checkpoint::ChannelValue;
use crate::id::Digest;

/// The role of a message that removes other messages.
const REMOVE_ROLE: &str = "remove";

/// The id of a removal that removes all messages before it.
const REMOVE_ALL: &str = "__remove_all__";

/// Returns an error if a write is neither a message nor an array of messages.
pub(super) fn check(write: &Value) -> Result<(), String> {
    message_slice(write).try_for_each(|message| {
        let fields = object(message)?;
        match fields.get("id") {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(_) => return Err("the `id` of a message must be a string".to_owned()),
        }
        if is_removal(fields) && id_of(fields).is_none() {
            return Err("a message with role `remove` must have an `id`".to_owned());
        }
        Ok(())
    })
}

/// Applies all writes to the old array of messages, in order.
pub(super) fn reduce(current: Option<&ChannelValue>, writes: &[&Value]) -> Result<Reduced, String> {
    let current = current.map(ChannelValue::value);
    let mut talk = MessageList::new(current.as_deref())?;
    for write in writes {
        check(write)?;
        for message in message_slice(write) {
            talk.apply(object(message)?)?;
        }
    }
    let unchanged_prefix = current.filter(|current| current.is_array()).map(|_| talk.unchanged);
    Ok(Reduced { value: Value::Array(talk.finish()).into(), unchanged_prefix })
}

/// Messages by position, with `None` for each removed message.
#[derive(Default)]
struct MessageList {
    messages: Vec<Option<Value>>,
    index_by_id: HashMap<String, usize>,
    /// Number of messages added or replaced so far. The id of a message without an own id is
    /// derived from its content and this number.
    seen: usize,
    /// Number of leading messages that are unchanged since the old list.
    unchanged: usize,
}

impl MessageList {
    fn new(current: Option<&Value>) -> Result<Self, String> {
        let mut talk = Self::default();
        match current {
            None | Some(Value::Null) => {}
            Some(Value::Array(messages)) => {
                for message in messages {
                    talk.upsert(object(message)?);
                }
                talk.unchanged = talk.unchanged_prefix(messages);
            }
            Some(_) => return Err("the value is not an array of messages".to_owned()),
        }
        Ok(talk)
    }

    fn apply(&mut self, message: &Map<String, Value>) -> Result<(), String> {
        if !is_removal(message) {
            self.upsert(message);
            return Ok(());
        }
        let id = id_of(message).unwrap_or_default();
        if id == REMOVE_ALL {
            self.messages.clear();
            self.index_by_id.clear();
            self.unchanged = 0;
            return Ok(());
        }
        let place = self.index_by_id.remove(id).ok_or_else(|| {
            format!("there is no message with the id `{id}` that could be removed")
        })?;
        self.messages[place] = None;
        self.unchanged = self.unchanged.min(place);
        Ok(())
    }

    /// Returns the number of leading messages that equal those of the stored array. The number is
    /// less than the length of the array if messages of the array have no id or the same id.
    fn unchanged_prefix(&self, stored: &[Value]) -> usize {
        let same = |(mine, stored): &(&Option<Value>, &Value)| {
            mine.as_ref().is_some_and(|mine| mine.get("id") == stored.get("id"))
        };
        if self.messages.len() < stored.len() {
            return 0;
        }
        self.messages.iter().zip(stored).take_while(same).count()
    }

    /// Replaces the message with the same id, or appends the message.
    fn upsert(&mut self, message: &Map<String, Value>) {
        let mut message = message.clone();
        let id = match id_of(&message) {
            Some(id) => id.to_owned(),
            None => self.derived_id(&message),
        };
        self.seen += 1;
        message.insert("id".to_owned(), Value::String(id.clone()));
        if let Some(place) = self.index_by_id.get(&id) {
            self.messages[*place] = Some(Value::Object(message));
            self.unchanged = self.unchanged.min(*place);
        } else {
            self.index_by_id.insert(id, self.messages.len());
            self.messages.push(Some(Value::Object(message)));
        }
    }

    /// Derives an id for a message from its content and position only, so that a replay derives the
    /// same id.
    fn derived_id(&self, message: &Map<String, Value>) -> String {
        let text = format!("{}:{}", self.seen, Value::Object(message.clone()));
        format!("msg-{}", &Digest::of(text.as_bytes()).to_hex()[..16])
    }

    fn finish(self) -> Vec<Value> {
        self.messages.into_iter().flatten().collect()
    }
}

/// Returns the messages of a write, which is one message or an array.
fn message_slice(write: &Value) -> std::slice::Iter<'_, Value> {
    match write {
        Value::Array(messages) => messages.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

fn object(message: &Value) -> Result<&Map<String, Value>, String> {
    message.as_object().ok_or_else(|| "a message must be an object".to_owned())
}

fn id_of(message: &Map<String, Value>) -> Option<&str> {
    message.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

fn is_removal(message: &Map<String, Value>) -> bool {
    message.get("role").and_then(Value::as_str) == Some(REMOVE_ROLE)
}
