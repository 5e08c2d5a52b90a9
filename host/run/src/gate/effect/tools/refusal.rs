//! Failures and messages of tool calls that are not made.

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::suggest;

use crate::gate::effect::EffectContext;
use crate::grant::{Grants, ToolGrant};
use crate::limit::TOOL_DEPTH;

/// Returns the failure for a tool that is not granted. One of `references` must be requested and
/// granted to allow the call. If some of them are requested, the failure names only these, or else
/// only those that are granted.
pub(super) fn denied(context: &EffectContext<'_>, wanted: &str, references: &[String]) -> Failure {
    let EffectContext { grants, caller, .. } = context;
    let sides = grants.sides.as_deref();
    let requested = sides.and_then(|sides| sides.request.as_ref()).map(|(_, needs)| needs);
    let granted = sides.and_then(|sides| sides.granted.as_ref());
    let of_side = |side: Option<&Grants>| -> Vec<&String> {
        let is_listed = |it: &&String| side.is_some_and(|grants| has_tool(grants, it));
        references.iter().filter(is_listed).collect()
    };
    let choices = [of_side(requested), of_side(granted), references.iter().collect()];
    let shown = choices.into_iter().find(|shown| !shown.is_empty()).unwrap_or_default();
    let lines: Vec<String> = shown.iter().map(|it| format!("`tools = [\"{it}\"]`")).collect();
    let what = format!("may not call the tool `{wanted}`");
    let change = format!("add {}", lines.join(" or "));
    grants.denial(caller, &what, &change, |grants| shown.iter().any(|it| has_tool(grants, it)))
}

/// Returns true if permissions include the tool with a full reference.
fn has_tool(grants: &Grants, reference: &str) -> bool {
    let Ok(ToolGrant { source, tool: Some(tool) }) = reference.parse::<ToolGrant>() else {
        return false;
    };
    grants.tools.iter().any(|grant| grant.source == source && grant.covers(&tool))
}

/// Returns the failure for a name that no tool has. `names` are the tools that the caller may call.
pub(super) fn unknown_name(context: &EffectContext<'_>, wanted: &str, names: &[&str]) -> Failure {
    let EffectContext { grants, caller, .. } = context;
    let Failure { message, .. } = unknown_reference(context, wanted, names);
    let places = grants.places(&caller.app, &caller.plugin);
    let text = format!(
        "{message}; a tool of a plugin that the app does not use yet needs `tools` {places}"
    );
    Failure::new(code::NOT_FOUND, text)
}

/// Returns the failure for the reference of a tool that its source does not have, although the
/// caller may call it. `references` are the tools of the source that the caller may call.
pub(super) fn unknown_reference(
    context: &EffectContext<'_>,
    wanted: &str,
    references: &[&str],
) -> Failure {
    let what = format!("tools that `{}` may call", context.caller.plugin);
    let hint = suggest::hint(wanted, &what, references.iter().copied());
    Failure::new(code::NOT_FOUND, format!("there is no tool `{wanted}`; {hint}"))
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
