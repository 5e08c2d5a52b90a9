//! Texts of conversations for users.

/// Texts for users. An app can give its own, in the language of its users.
///
/// ```
/// use wattle_plugin::chat::{Chat, Texts};
///
/// const TEXTS: Texts = Texts { empty: "Say something.", ..Texts::ENGLISH };
/// const CHAT: Chat = Chat::graph("notes").texts(&TEXTS);
/// # let _ = CHAT;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texts {
    /// The body is not a [`ChatRequest`](super::ChatRequest); status 400.
    pub malformed: &'static str,
    /// The message is empty; status 400.
    pub empty: &'static str,
    /// No thread can have the id; status 400.
    pub thread_id: &'static str,
    /// The format of the stream is unknown; status 400.
    pub format: &'static str,
    /// The app has no such conversation, or it has expired; status 404.
    pub missing: &'static str,
    /// A run of the conversation is active; status 409.
    pub busy: &'static str,
    /// A question of the conversation is pending, and the request is a message or a retry; status
    /// 409.
    pub waiting: &'static str,
    /// The body is not an [`AnswerRequest`](super::AnswerRequest), or the answer does not fit its
    /// question; status 400.
    pub answer: &'static str,
    /// The question of an answer is not pending; status 409.
    pub not_pending: &'static str,
    /// The last message has a reply, so a retry has nothing to do; status 409.
    pub nothing_to_retry: &'static str,
    /// The message is too long; status 413.
    pub too_long: &'static str,
    /// The title is missing, empty or longer than 200 characters; status 400.
    pub title: &'static str,
    /// A parameter of a list is invalid; status 400.
    pub list: &'static str,
    /// The run was cancelled before its reply; status 409.
    pub cancelled: &'static str,
    /// The run failed; status 502. Only
    /// [`Ended::into_response`](super::Ended::into_response) uses the text.
    pub failed: &'static str,
    /// Error of a tool call without a result, in the messages of a conversation.
    pub unfinished: &'static str,
}

impl Texts {
    /// The texts of a [`Chat`](super::Chat) that sets none.
    pub const ENGLISH: Self = Self {
        malformed: "the body must be a JSON object with a text in `message`",
        empty: "the message is empty",
        thread_id: "`threadId` is invalid",
        format: "`format` must be `sse` or `ai-sdk`",
        missing: "the conversation does not exist or has expired",
        busy: "the reply to the previous message is not complete; try again later",
        waiting: "an operation of the conversation waits for an answer",
        answer: "the answer does not fit the question",
        not_pending: "the question does not wait for an answer",
        nothing_to_retry: "the last message has a reply",
        too_long: "the message is too long; send it in several messages",
        title: "`title` must have 1 to 200 characters",
        list: "`limit`, `after` or `text` is invalid",
        cancelled: "the run was cancelled",
        failed: "the run failed; try again later",
        unfinished: "this step was not completed",
    };
}
