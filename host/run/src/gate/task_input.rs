//! The input of a task, as the histories of its model requests read it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use wattle_graph::checkpoint::ChannelValue;
use wattle_graph::id::ChannelName;
use wattle_graph::plan::TaskInput;

/// The input of a task. A value of a send is copied for its first history, and all histories share
/// the copy and its index: a batch of calls can refer to one list many times.
pub(crate) struct HistoryInput {
    input: TaskInput,
    copies: Mutex<BTreeMap<ChannelName, ChannelValue>>,
}

impl HistoryInput {
    pub(crate) fn new(input: TaskInput) -> Self {
        Self { input, copies: Mutex::default() }
    }

    /// Returns the value of a channel in the input; `None` if the input has none.
    pub(crate) fn channel(&self, name: &ChannelName) -> Option<ChannelValue> {
        let TaskInput::Sent(_) = &self.input else { return self.input.channel(name) };
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = copies.get(name) {
            return Some(copy.clone());
        }
        let copy = self.input.channel(name)?;
        copies.insert(name.clone(), copy.clone());
        Some(copy)
    }
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
            TaskInput::State { values: Arc::new(values.into()), reads: None },
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
}
