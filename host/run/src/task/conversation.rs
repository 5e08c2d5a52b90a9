//! The conversation in the input of a task.

use wattle_graph::checkpoint::ChannelValue;
use wattle_graph::conversation::turn_start;
use wattle_graph::graph::NodeConversation;
use wattle_graph::plan::TaskInput;

use crate::blocking::{block_in_place_in_turn, is_long_index};
use crate::caller_id::CallerId;
use crate::ports::sandbox::InputConversation;

/// Returns which part of the conversation of a node is in its input. A conversation has no messages
/// if the input has no field with the name of the channel, or one that is not a list. Long work
/// counts for `caller`.
pub(super) async fn input_conversation(
    caller: CallerId,
    conversation: &NodeConversation,
    input: &TaskInput,
) -> InputConversation {
    let channel = conversation.channel.clone();
    let value = input.channel(&channel);
    let Some(list) = value.as_ref().and_then(ChannelValue::list) else {
        return InputConversation { channel, from: 0, length: 0 };
    };
    let from = if conversation.is_whole {
        0
    } else {
        block_in_place_in_turn(caller, is_long_index(list), || turn_start(list)).await
    };
    InputConversation { channel, from, length: list.len() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use wattle_graph::id::ChannelName;

    use super::*;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    fn talk(roles: &[&str]) -> Value {
        let message =
            |(place, role): (usize, &&str)| json!({ "id": format!("m{place}"), "role": role });
        roles.iter().enumerate().map(message).collect()
    }

    /// Returns an input of the state and one of a send, both with the field `messages`.
    fn inputs(messages: &Value) -> [TaskInput; 2] {
        let values = [("messages", messages.clone()), ("n", json!(1)), ("none", json!(null))];
        let values = values.map(|(channel, value)| (name(channel), ChannelValue::from(value)));
        let sent = json!({ "messages": messages, "n": 1, "none": null });
        [
            TaskInput::State { values: Arc::new(values.into()), reads: None },
            TaskInput::Sent(Arc::new(sent)),
        ]
    }

    async fn part(channel: &str, is_whole: bool, input: &TaskInput) -> (usize, usize) {
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
        let sent = TaskInput::Sent(Arc::new(talk(&["user"])));
        assert_eq!(part("messages", false, &sent).await, (0, 0));
        let [TaskInput::State { values, .. }, _] = inputs(&talk(&["user"])) else { panic!() };
        let reads = Some(Arc::new([name("n")].into()));
        let unread = TaskInput::State { values, reads };
        assert_eq!(part("messages", false, &unread).await, (0, 0));
    }

    /// The work of a long list waits for a turn, and has the same result.
    #[tokio::test]
    async fn a_long_conversation_is_cut_as_a_short_one() {
        let roles = ["user", "assistant"].repeat(1_000);
        for input in inputs(&talk(&roles)) {
            assert_eq!(part("messages", false, &input).await, (1_998, 2_000));
        }
    }
}
