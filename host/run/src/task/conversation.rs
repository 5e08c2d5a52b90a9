//! The conversation in the input of a task.

use wattle_graph::conversation::turn_start;
use wattle_graph::id::ChannelName;
use wattle_graph::plan::TaskInput;

use crate::blocking::{block_in_place_in_turn, is_long_index};
use crate::caller_id::CallerId;
use crate::ports::sandbox::InputConversation;

/// Returns the conversation of a node in its input. `None` if the input has no field with the name
/// of the channel, or one that is not a list. Long work counts for `caller`.
pub(super) async fn input_conversation(
    caller: CallerId,
    channel: &ChannelName,
    input: &TaskInput,
) -> Option<InputConversation> {
    let value = input.channel(channel)?;
    let list = value.list()?;
    let from = block_in_place_in_turn(caller, is_long_index(list), || turn_start(list)).await;
    Some(InputConversation { channel: channel.clone(), from, length: list.len() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use wattle_graph::checkpoint::ChannelValue;

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
        let values = [("messages", messages.clone()), ("n", json!(1))];
        let values = values.map(|(channel, value)| (name(channel), ChannelValue::from(value)));
        let sent = json!({ "messages": messages, "n": 1 });
        [
            TaskInput::State { values: Arc::new(values.into()), reads: None },
            TaskInput::Sent(Arc::new(sent)),
        ]
    }

    async fn found(channel: &str, input: &TaskInput) -> Option<(usize, usize)> {
        let channel = name(channel);
        let found = input_conversation(CallerId::default(), &channel, input).await?;
        assert_eq!(found.channel, channel);
        Some((found.from, found.length))
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
                assert_eq!(found("messages", &input).await, Some((from, roles.len())), "{roles:?}");
            }
        }
    }

    #[tokio::test]
    async fn only_a_list_in_the_input_is_a_conversation() {
        for input in inputs(&talk(&["user"])) {
            assert_eq!(found("n", &input).await, None);
            assert_eq!(found("missing", &input).await, None);
        }
        let sent = TaskInput::Sent(Arc::new(talk(&["user"])));
        assert_eq!(found("messages", &sent).await, None);
        let [TaskInput::State { values, .. }, _] = inputs(&talk(&["user"])) else { panic!() };
        let reads = Some(Arc::new([name("n")].into()));
        assert_eq!(found("messages", &TaskInput::State { values, reads }).await, None);
    }

    /// The work of a long list waits for a turn, and has the same result.
    #[tokio::test]
    async fn a_long_conversation_is_cut_as_a_short_one() {
        let roles = ["user", "assistant"].repeat(1_000);
        for input in inputs(&talk(&roles)) {
            assert_eq!(found("messages", &input).await, Some((1_998, 2_000)));
        }
    }
}
