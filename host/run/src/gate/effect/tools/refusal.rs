//! Failures and messages of tool calls that are not made.

use serde_json::json;
use wattle_graph::failure::{Failure, code};

use crate::gate::effect::EffectContext;
use crate::limit::TOOL_DEPTH;

/// Returns the failure for a tool that is not granted. The operator must grant one of `references`
/// to allow the call.
pub(super) fn denied(context: &EffectContext<'_>, wanted: &str, references: &[String]) -> Failure {
    let lines: Vec<String> =
        references.iter().map(|reference| format!("`tools = [\"{reference}\"]`")).collect();
    Failure::new(
        code::DENIED,
        format!(
            "plugin `{}` may not call the tool `{wanted}`; add {} under `[grants.{}]` in \
             wattle.toml",
            context.caller.plugin,
            lines.join(" or "),
            context.grant_key()
        ),
    )
}

/// Returns the failure for a tool that does not exist. `names` are the tools that the caller may
/// call.
pub(super) fn unknown(context: &EffectContext<'_>, wanted: &str, names: &[&str]) -> Failure {
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Failure::new(
        code::NOT_FOUND,
        format!(
            "there is no tool `{wanted}`; tools that `{}` may call: {known}; a tool of a plugin \
             that the app does not use yet needs `tools` under `[grants.{}]` in wattle.toml",
            context.caller.plugin,
            context.grant_key()
        ),
    )
}

/// Returns the failure of a call in too many other tool calls.
pub(super) fn too_deep() -> Failure {
    let text = format!("tools call tools more than {TOOL_DEPTH} levels deep");
    let details = json!({ "limit": "tool_depth", "allowed": TOOL_DEPTH });
    Failure::new(code::LIMIT, text).with_details(details)
}

/// Returns the message for a name that the tools with these references share.
pub(super) fn ambiguous(name: &str, references: &[String]) -> String {
    let places: Vec<String> = references.iter().map(|reference| format!("`{reference}`")).collect();
    format!(
        "the tool name `{name}` is ambiguous: {} have it; call one by its full reference, or grant \
         only one",
        places.join(" and ")
    )
}
