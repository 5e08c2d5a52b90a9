//! The completions of stand-in models.

use super::question::Ask;

/// A completion of a stand-in model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) content: String,
    /// The reasoning before the completion.
    pub(super) reasoning: String,
    /// The requested tool calls.
    pub(super) asks: Vec<Ask>,
    /// Name of the applied rule, for the request log.
    pub(super) rule: &'static str,
    pub(super) prompt_tokens: usize,
    pub(super) completion_tokens: usize,
}
