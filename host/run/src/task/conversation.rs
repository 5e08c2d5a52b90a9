//! The conversation in the input of a task.

use wattle_graph::checkpoint::ChannelValue;
use wattle_graph::conversation::turn_start;
use wattle_graph::graph::NodeConversation;

use crate::blocking::block_in_place_in_turn;
use crate::caller_id::CallerId;
use crate::gate::task_input::{HistoryInput, ListRead};
use crate::ports::sandbox::InputConversation;

/// Returns which part of the conversation of a node is in its input. A conversation has no messages
/// if the input has no field with the name of the channel, or one that is not a list. Long work
/// counts for `caller`.
pub(crate) async fn input_conversation(
    caller: CallerId,
    conversation: &NodeConversation,
    input: &HistoryInput,
) -> InputConversation {
    let NodeConversation { channel, is_whole } = conversation;
    let read = if *is_whole { ListRead::Items } else { ListRead::Index };
    let is_long = input.is_long_read(channel, read);
    let work = || {
        let value = input.channel(channel);
        let list = value.as_ref().and_then(ChannelValue::list)?;
        Some((if *is_whole { 0 } else { turn_start(list) }, list.len()))
    };
    let part = block_in_place_in_turn(caller, is_long, work).await;
    let (from, length) = part.unwrap_or_default();
    InputConversation { channel: channel.clone(), from, length }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use futures::poll;
    use serde_json::{Value, json};
    use wattle_graph::id::ChannelName;
    use wattle_graph::plan::TaskInput;

    use super::*;
    use crate::blocking::hold_all_turns;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    fn talk(roles: &[&str]) -> Value {
        let message =
            |(place, role): (usize, &&str)| json!({ "id": format!("m{place}"), "role": role });
        roles.iter().enumerate().map(message).collect()
    }

    fn sent_input(sent: Value) -> TaskInput {
        TaskInput::Sent(Arc::new(sent))
    }

    /// Returns an input of the state and one of a send, both with the field `messages`.
    fn inputs(messages: &Value) -> [HistoryInput; 2] {
        let values = [("messages", messages.clone()), ("n", json!(1)), ("none", json!(null))];
        let values = values.map(|(channel, value)| (name(channel), ChannelValue::from(value)));
        let sent = json!({ "messages": messages, "n": 1, "none": null });
        [TaskInput::State { values: values.into(), reads: None }, sent_input(sent)]
            .map(HistoryInput::new)
    }

    async fn part(channel: &str, is_whole: bool, input: &HistoryInput) -> (usize, usize) {
        let conversation = NodeConversation { channel: name(channel), is_whole };
        let part = input_conversation(CallerId::default(), &conversation, input).await;
        assert_eq!(part.channel, conversation.channel);
        (part.from, part.length)
    }

    #[tokio::test]
    async fn a_conversation_is_cut_at_its_current_turn() {
        let cases: [(&[&str], usize); 4] = [
            (&["user", "assistant", "user", "assistant"], 2),
            (&["user", "assistant"], 0),
            (&["assistant", "assistant"], 0),
            (&[], 0),
        ];
        for (roles, from) in cases {
            for input in inputs(&talk(roles)) {
                let found = part("messages", false, &input).await;
                assert_eq!(found, (from, roles.len()), "{roles:?}");
                assert_eq!(part("messages", true, &input).await, (0, roles.len()), "{roles:?}");
            }
        }
    }

    /// The node gets the position nevertheless, so it does not take the host for one that cannot
    /// cut conversations.
    #[tokio::test]
    async fn a_conversation_without_a_list_has_no_messages() {
        for input in inputs(&talk(&["user"])) {
            for channel in ["n", "none", "missing"] {
                assert_eq!(part(channel, false, &input).await, (0, 0), "{channel}");
            }
        }
        let sent = HistoryInput::new(sent_input(talk(&["user"])));
        assert_eq!(part("messages", false, &sent).await, (0, 0));
        let [state, _] = inputs(&talk(&["user"]));
        let TaskInput::State { values, .. } = state.task_input().clone() else { panic!() };
        let reads = Some(Arc::new([name("n")].into()));
        let unread = HistoryInput::new(TaskInput::State { values, reads });
        assert_eq!(part("messages", false, &unread).await, (0, 0));
    }

    /// The work of a long list waits for a turn, and has the same result.
    #[tokio::test]
    async fn a_long_conversation_is_cut_as_a_short_one() {
        let roles = ["user", "assistant"].repeat(1_000);
        for input in inputs(&talk(&roles)) {
            assert_eq!(part("messages", true, &input).await, (0, 2_000));
            assert_eq!(part("messages", false, &input).await, (1_998, 2_000));
            let is_long = input.is_long_read(&name("messages"), ListRead::Index);
            assert!(!is_long, "histories share the index");
        }
    }

    #[tokio::test]
    async fn a_large_sent_list_is_copied_in_a_turn() {
        let sent = HistoryInput::new(sent_input(json!({ "messages": talk(&vec!["user"; 2_000]) })));
        let held = hold_all_turns().await;
        let mut waiting = pin!(part("messages", true, &sent));
        assert!(poll!(waiting.as_mut()).is_pending());
        drop(held);
        assert_eq!(waiting.await, (0, 2_000));
    }
}
