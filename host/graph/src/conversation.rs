//! Conversations: the messages of a channel, as models see them and as a node that calls a model
//! needs them. The messages have the format of the state, which is the format of
//! [`message`](crate::message).
//!
//! A cancellation, a crash or an edit can end a conversation at any point. A tool call can therefore
//! have its result at any later position, or no result.
//!
//! A conversation can be long, and most of it does not change. [`turn_start`] and
//! [`unique_call_ids`] read the indexes that the versions of a [`SharedList`] share, and only few of
//! the messages.

mod block;
mod call_ids;
mod content;
mod name;
mod show;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::checkpoint::SharedList;

pub use self::call_ids::unique_call_ids;
pub use self::show::to_messages;

/// Returns the position of the last user message of a conversation.
pub(crate) fn last_user(list: &SharedList) -> Option<usize> {
    let users = list.chunks().filter_map(|(first, chunk)| Some(first + chunk.last_user()?));
    users.last()
}

/// Returns the position of the message with which the current turn of a conversation begins: the
/// last user message, or an earlier message with a tool call that has no result. Without either, a
/// turn begins at 0.
///
/// The messages from this position on have all calls without a result and all that follows the last
/// user message, so a node that closes calls and counts turns needs no other messages. The rule is
/// fixed, because a task that is executed again must read the same messages.
pub fn turn_start(list: &SharedList) -> usize {
    let mut last_user = 0;
    // The position of the first call without a result so far, by the id of the call.
    let mut open = HashMap::<&str, usize>::new();
    for (first, chunk) in list.chunks() {
        if let Some(place) = chunk.last_user() {
            last_user = first + place;
        }
        chunk.remove_with_result(&mut open);
        for (place, id) in chunk.open_calls() {
            open.entry(id).or_insert(first + place);
        }
    }
    open.into_values().min().map_or(last_user, |first_open| first_open.min(last_user))
}
