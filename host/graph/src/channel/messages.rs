//! The reducer `messages`, for an array of messages, which are objects with an `id`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Reduced, list_of};
use crate::checkpoint::{ChannelValue, SharedList, id_hash};
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

/// Applies all writes to the old array of messages, in order. The new list shares the messages that
/// do not change.
pub(super) fn reduce(current: Option<&ChannelValue>, writes: &[&Value]) -> Result<Reduced, String> {
    let stored =
        list_of(current).ok_or_else(|| "the value is not an array of messages".to_owned())?;
    let (changes, refused) = changes(writes, stored.len());
    let mut talk = MessageList::new(stored, &changes)?;
    for change in changes {
        talk.apply(change)?;
    }
    if let Some(error) = refused {
        return Err(error);
    }
    let unchanged_prefix = current.and_then(ChannelValue::list).map(|_| talk.unchanged);
    Ok(Reduced { value: talk.finish().into(), unchanged_prefix })
}

/// A change of an array of messages.
enum Change<'w> {
    /// Replaces the stored message with this id by the message, or appends the message. The message
    /// has this id.
    Upsert {
        id: String,
        message: Arc<Value>,
    },
    Remove(&'w str),
    RemoveAll,
}

impl Change<'_> {
    /// Returns the id of the message that the change affects; `None` if the change affects all
    /// messages.
    fn id(&self) -> Option<&str> {
        match self {
            Self::Upsert { id, .. } => Some(id.as_str()),
            Self::Remove(id) => Some(*id),
            Self::RemoveAll => None,
        }
    }
}

/// Returns the changes that writes make to an array of `stored` messages, up to the first invalid
/// write, and the error of that write.
fn changes<'w>(writes: &[&'w Value], stored: usize) -> (Vec<Change<'w>>, Option<String>) {
    let (mut changes, mut seen) = (Vec::new(), stored);
    for write in writes.iter().copied() {
        if let Err(error) = check(write) {
            return (changes, Some(error));
        }
        for message in message_slice(write).filter_map(Value::as_object) {
            changes.push(match id_of(message) {
                Some(REMOVE_ALL) if is_removal(message) => Change::RemoveAll,
                Some(id) if is_removal(message) => Change::Remove(id),
                _ => {
                    let (id, message) = with_id(message, seen);
                    seen += 1;
                    Change::Upsert { id, message }
                }
            });
        }
    }
    (changes, None)
}

/// Messages by position.
#[derive(Default)]
struct MessageList {
    /// All messages, including the removed ones.
    messages: SharedList,
    removed: BTreeSet<usize>,
    /// Positions by id. At least the messages that change are in the index.
    index_by_id: HashMap<String, usize>,
    /// Number of leading messages that are unchanged since the old list.
    unchanged: usize,
}

impl MessageList {
    /// Starts from the old list, to which `changes` will be applied.
    fn new(stored: SharedList, changes: &[Change<'_>]) -> Result<Self, String> {
        if !stored.has_unique_ids() {
            return Self::with_all_ids(&stored);
        }
        let (index_by_id, unchanged) = (index(&stored, changes), stored.len());
        Ok(Self { messages: stored, removed: BTreeSet::new(), index_by_id, unchanged })
    }

    /// Starts from a list that another source made. Its messages may have no id, or the same id.
    fn with_all_ids(stored: &SharedList) -> Result<Self, String> {
        let mut talk = Self::default();
        for (seen, message) in stored.shared().enumerate() {
            let fields = object(message)?;
            let (id, message) = match id_of(fields) {
                Some(id) => (id.to_owned(), message.clone()),
                None => with_id(fields, seen),
            };
            talk.upsert(id, message);
        }
        // Of two messages with the same id, only the later one is left.
        if talk.messages.len() == stored.len() {
            let all = talk.messages.iter().zip(stored.iter());
            talk.unchanged = all.take_while(|(mine, old)| mine.get("id") == old.get("id")).count();
        }
        Ok(talk)
    }

    fn apply(&mut self, change: Change<'_>) -> Result<(), String> {
        match change {
            Change::Upsert { id, message } => self.upsert(id, message),
            Change::Remove(id) => {
                let place = self.index_by_id.remove(id).ok_or_else(|| {
                    format!("there is no message with the id `{id}` that could be removed")
                })?;
                self.removed.insert(place);
                self.unchanged = self.unchanged.min(place);
            }
            Change::RemoveAll => *self = Self::default(),
        }
        Ok(())
    }

    /// Replaces the message with the same id, or appends the message.
    fn upsert(&mut self, id: String, message: Arc<Value>) {
        if let Some(place) = self.index_by_id.get(&id) {
            self.unchanged = self.unchanged.min(*place);
            self.messages.set(*place, message);
        } else {
            self.index_by_id.insert(id, self.messages.len());
            self.messages.push(message);
        }
    }

    fn finish(self) -> SharedList {
        self.messages.without(&self.removed).with_unique_ids()
    }
}

/// Returns the positions by id of the stored messages that change. The function compares only the
/// hashes of ids that the list stores, so the result can contain further messages.
fn index(stored: &SharedList, changes: &[Change<'_>]) -> HashMap<String, usize> {
    let mut wanted: Vec<u64> = changes.iter().filter_map(Change::id).map(id_hash).collect();
    wanted.sort_unstable();
    let found = stored.id_hashes().enumerate();
    let found = found.filter(|(_, hash)| wanted.binary_search(hash).is_ok());
    let entry = |(place, _)| Some((id_of(stored.get(place)?.as_object()?)?.to_owned(), place));
    found.filter_map(entry).collect()
}

/// Returns a message with its id. A message without an id gets a derived id. `seen` is the number
/// of messages that were added or replaced before this message.
fn with_id(message: &Map<String, Value>, seen: usize) -> (String, Arc<Value>) {
    let id = id_of(message).map_or_else(|| derived_id(message, seen), ToOwned::to_owned);
    let mut message = message.clone();
    message.insert("id".to_owned(), Value::String(id.clone()));
    (id, Arc::new(Value::Object(message)))
}

/// Derives an id for a message from its content and position only, so that a replay derives the
/// same id.
fn derived_id(message: &Map<String, Value>, seen: usize) -> String {
    let text = format!("{seen}:{}", Value::Object(message.clone()));
    format!("msg-{}", &Digest::of(text.as_bytes()).to_hex()[..16])
}

/// Returns the messages of a write: a single message or an array of messages.
fn message_slice(write: &Value) -> std::slice::Iter<'_, Value> {
    match write {
        Value::Array(messages) => messages.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

fn object(message: &Value) -> Result<&Map<String, Value>, String> {
    message.as_object().ok_or_else(|| {
        "a message must be an object such as `{ \"role\": \"user\", \"content\": \"hello\" }`"
            .to_owned()
    })
}

fn id_of(message: &Map<String, Value>) -> Option<&str> {
    message.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

fn is_removal(message: &Map<String, Value>) -> bool {
    message.get("role").and_then(Value::as_str) == Some(REMOVE_ROLE)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use serde_json::json;

    use super::*;

    /// The reducer `messages`, implemented on arrays. Also returns the number of leading messages
    /// that are unchanged.
    fn reference(stored: &[Value], writes: &[Value]) -> Result<(Vec<Value>, usize), String> {
        let (mut talk, mut seen) = (Vec::new(), 0);
        for message in stored {
            upsert(&mut talk, &mut seen, object(message)?);
        }
        let same = |(mine, stored): &(&Value, &Value)| mine["id"] == stored["id"];
        let is_whole = talk.len() == stored.len();
        let mut unchanged =
            if is_whole { talk.iter().zip(stored).take_while(same).count() } else { 0 };
        for write in writes {
            check(write)?;
            for message in message_slice(write) {
                let fields = object(message)?;
                let place = match id_of(fields).filter(|_| is_removal(fields)) {
                    None => upsert(&mut talk, &mut seen, fields),
                    Some(REMOVE_ALL) => {
                        talk.clear();
                        0
                    }
                    Some(id) => {
                        let place = talk.iter().position(|other| other["id"] == id);
                        let place = place.ok_or_else(|| {
                            format!("there is no message with the id `{id}` that could be removed")
                        })?;
                        talk.remove(place);
                        place
                    }
                };
                unchanged = unchanged.min(place);
            }
        }
        Ok((talk, unchanged))
    }

    fn upsert(talk: &mut Vec<Value>, seen: &mut usize, message: &Map<String, Value>) -> usize {
        let (_, message) = with_id(message, *seen);
        *seen += 1;
        let message = Value::clone(&message);
        let place = talk.iter().position(|other| other["id"] == message["id"]);
        match place {
            Some(place) => talk[place] = message,
            None => talk.push(message),
        }
        place.unwrap_or(talk.len())
    }

    fn message() -> impl Strategy<Value = Value> {
        let id = prop_oneof![
            6 => "[a-f]".prop_map(|id| json!({ "id": id })),
            2 => Just(json!({})),
            1 => Just(json!({ "id": null })),
            1 => Just(json!({ "id": "" })),
        ];
        (id, 0_u8..3).prop_map(|(mut message, content)| {
            message["content"] = content.into();
            message
        })
    }

    fn change() -> impl Strategy<Value = Value> {
        prop_oneof![
            12 => message(),
            4 => "[a-f]".prop_map(|id| json!({ "id": id, "role": REMOVE_ROLE })),
            1 => Just(json!({ "id": REMOVE_ALL, "role": REMOVE_ROLE })),
            1 => Just(json!({ "role": REMOVE_ROLE })),
            1 => Just(json!({ "id": 7 })),
            1 => Just(json!("text")),
        ]
    }

    fn write() -> impl Strategy<Value = Value> {
        prop_oneof![change(), vec(change(), 0..4).prop_map(Value::from)]
    }

    proptest! {
        #[test]
        fn messages_reducer_takes_the_messages_of_an_array(
            start in vec(message(), 0..6),
            steps in vec((vec(write(), 0..3), any::<bool>()), 1..12),
        ) {
            let (mut array, mut shared) = (start.clone(), ChannelValue::from(json!(start)));
            for (writes, is_read_again) in steps {
                let expected = reference(&array, &writes);
                let made = reduce(Some(&shared), &writes.iter().collect::<Vec<_>>());
                let told = made.as_ref().map(|made| (json!(made.value), made.unchanged_prefix));
                let wanted = expected.as_ref().map(|(talk, same)| (json!(talk), Some(*same)));
                prop_assert_eq!(told, wanted);
                if let (Ok((talk, _)), Ok(made)) = (expected, made) {
                    shared = if is_read_again { json!(talk).into() } else { made.value };
                    array = talk;
                }
            }
        }
    }

    #[test]
    fn only_messages_that_change_are_copied() {
        let copied = |old: &ChannelValue, write: &Value| {
            let new = reduce(Some(old), &[write]).unwrap().value;
            new.list().unwrap().unshared_with(old.list().unwrap())
        };
        for length in [10, 2_000] {
            let talk: Vec<Value> = (0..length).map(|n| json!({ "id": n.to_string() })).collect();
            let made = reduce(None, &[&json!(talk)]).unwrap().value;
            // A value that a store has read. Its ids are not known to be unique.
            let read = ChannelValue::from(made.value().into_owned());
            for old in [made, read] {
                assert_eq!(copied(&old, &json!({ "content": "new" })), 1);
                assert_eq!(copied(&old, &json!([{ "id": "5", "content": "new" }])), 1);
                assert_eq!(copied(&old, &json!([])), 0);
            }
        }
    }
}
