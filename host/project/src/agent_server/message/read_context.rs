//! What the conversion of messages of clients needs of its caller.

use serde_json::Value;

/// Parses JSON in a text of a client. Returns `None` if the text is not JSON, or if its values
/// exceed a limit of the caller.
pub type ParseText<'p> = &'p dyn Fn(&str) -> Option<Value>;

/// What the conversion of messages of clients needs of its caller.
pub struct ReadContext<'c> {
    /// Generates an id for a message without one.
    pub new_id: &'c mut dyn FnMut() -> String,
    /// Parses the arguments of tool calls that are texts. Arguments for which it returns `None`
    /// stay texts.
    pub parse: ParseText<'c>,
}
