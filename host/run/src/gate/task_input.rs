//! The input of a task, as the histories of its model requests read it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_graph::checkpoint::{ChannelValue, SharedList};
use wattle_graph::id::ChannelName;
use wattle_graph::plan::TaskInput;

use crate::blocking::are_large_values;

/// What is read of the list of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListRead {
    /// The items.
    Items,
    /// The index, which is computed for the parts of the list without one.
    Index,
}

/// The input of a task. A value of a send is copied when it is first read as a conversation. The
/// search for the current turn and all histories share the copy and its index: a batch of calls can
/// refer to one list many times.
pub(crate) struct HistoryInput {
    input: TaskInput,
    copies: Mutex<BTreeMap<ChannelName, ChannelValue>>,
}

impl HistoryInput {
    pub(crate) fn new(input: TaskInput) -> Self {
        Self { input, copies: Mutex::default() }
    }

    /// Returns the input itself.
    pub(crate) fn task_input(&self) -> &TaskInput {
        &self.input
    }

    /// Returns true if reading the list of a channel is long work: [`Self::channel`] must first
    /// copy a large value of a send, or much of the list has no index.
    pub(crate) fn is_long_read(&self, name: &ChannelName, read: ListRead) -> bool {
        let value = match &self.input {
            TaskInput::State { .. } => self.input.channel(name),
            TaskInput::Sent(sent) => {
                let Some(copy) = self.copies().get(name).cloned() else {
                    return are_large_values(sent.get(name.as_str()));
                };
                Some(copy)
            }
        };
        read == ListRead::Index
            && value.as_ref().and_then(ChannelValue::list).is_some_and(is_long_index)
    }

    /// Returns the value of a channel in the input; `None` if the input has none.
    pub(crate) fn channel(&self, name: &ChannelName) -> Option<ChannelValue> {
        let TaskInput::Sent(_) = &self.input else { return self.input.channel(name) };
        let mut copies = self.copies();
        if let Some(copy) = copies.get(name) {
            return Some(copy.clone());
        }
        let copy = self.input.channel(name)?;
        copies.insert(name.clone(), copy.clone());
        Some(copy)
    }

    fn copies(&self) -> MutexGuard<'_, BTreeMap<ChannelName, ChannelValue>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if indexing a list is long work. Versions of a list share the index of their common
/// parts, so this is mostly the case for the first version of a long list, and for the input of a
/// send.
fn is_long_index(list: &SharedList) -> bool {
    are_large_values(list.unindexed())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    #[test]
    fn histories_share_a_copy_of_a_sent_list() {
        let messages: Vec<u32> = (0..100).collect();
        let values = [(name("messages"), ChannelValue::from(json!(messages)))];
        let sent = json!({ "messages": messages, "n": 1 });
        for input in [
            TaskInput::State { values: values.into(), reads: None },
            TaskInput::Sent(Arc::new(sent.clone())),
        ] {
            let input = HistoryInput::new(input);
            let first = input.channel(&name("messages")).unwrap();
            assert_eq!(first, json!(messages));
            first.list().unwrap().digest();
            let next = input.channel(&name("messages")).unwrap();
            assert_eq!(next.list().unwrap().unindexed().next(), None, "it has the same index");
            assert!(input.channel(&name("missing")).is_none());
        }
        let input = HistoryInput::new(TaskInput::Sent(Arc::new(sent)));
        assert_eq!(input.channel(&name("n")).unwrap(), json!(1));
    }

    #[test]
    fn only_the_first_copy_of_a_large_sent_list_takes_long() {
        let sent = |count: u32| json!({ "messages": (0..count).collect::<Vec<_>>() });
        let input = |count| HistoryInput::new(TaskInput::Sent(Arc::new(sent(count))));
        let messages = name("messages");
        let work = |input: &HistoryInput| {
            [ListRead::Items, ListRead::Index].map(|read| input.is_long_read(&messages, read))
        };
        assert_eq!(work(&input(100)), [false, false]);
        let large = input(2_000);
        assert_eq!(work(&large), [true, true]);
        let copy = large.channel(&messages).unwrap();
        assert_eq!(work(&large), [false, true], "the copy has no index");
        copy.list().unwrap().digest();
        assert_eq!(work(&large), [false, false]);
        assert!(!large.is_long_read(&name("missing"), ListRead::Index));
    }

    #[test]
    fn only_the_parts_of_a_list_without_an_index_take_long() {
        let mut list: SharedList = (0..2_000).map(|n| json!(n)).collect();
        assert!(is_long_index(&list));
        list.digest();
        assert!(!is_long_index(&list));
        list.extend([json!("new")]);
        assert!(!is_long_index(&list));
        list.extend([json!("x".repeat(200_000))]);
        assert!(is_long_index(&list));
    }

    #[test]
    fn a_list_of_the_state_is_not_copied() {
        let list: Vec<u32> = (0..2_000).collect();
        let (messages, list) = (name("messages"), ChannelValue::from(json!(list)));
        let values = [(messages.clone(), list.clone())].into();
        let input = HistoryInput::new(TaskInput::State { values, reads: None });
        assert!(!input.is_long_read(&messages, ListRead::Items));
        assert!(input.is_long_read(&messages, ListRead::Index));
        list.list().unwrap().digest();
        assert!(!input.is_long_read(&messages, ListRead::Index));
    }
}
