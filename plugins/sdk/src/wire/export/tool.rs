//! The export `tool`.

use crate::bindings::imports::wattle::plugin::types;
use crate::bindings::tool::exports::wattle::plugin::tool as raw;
use crate::export::ToolEntry;
use crate::failure::Failure;
use crate::tool::{HINTS, ToolContext, ToolHints, ToolOutput};
use crate::wire::convert::{extra, raw_extra, text};
use crate::wire::panic::report_panics;

/// Returns the descriptions of all tools.
pub fn list_tools(entries: &[ToolEntry]) -> Vec<raw::ToolInfo> {
    report_panics();
    let info = |entry: &ToolEntry| {
        let function = (entry.function)();
        raw::ToolInfo {
            name: entry.name.to_owned(),
            description: entry.description.to_owned(),
            arguments_schema: function.arguments_schema().to_string(),
            accepts_invalid: function.accepts_invalid(),
            extra: hints(entry.hints),
        }
    };
    entries.iter().map(info).collect()
}

fn hints(hints: ToolHints) -> Vec<(String, String)> {
    if hints == ToolHints::default() {
        return Vec::new();
    }
    let ToolHints { read_only, idempotent } = hints;
    let hints = serde_json::json!({ "read_only": read_only, "idempotent": idempotent });
    vec![(HINTS.to_owned(), hints.to_string())]
}

/// Calls the tool that the context names. Fails with `not-found` if it does not exist.
pub fn tool_named(
    entries: &[ToolEntry],
    context: raw::CallContext,
    arguments: &str,
) -> Result<raw::ToolOutput, types::Failure> {
    report_panics();
    let context = ToolContext::from(context);
    let entry = entries
        .iter()
        .find(|entry| entry.name == context.tool)
        .ok_or_else(|| Failure::not_found(format!("the plugin has no tool `{}`", context.tool)))?;
    Ok((entry.function)().call(&context, arguments)?.into())
}

impl From<raw::CallContext> for ToolContext {
    fn from(context: raw::CallContext) -> Self {
        Self {
            tool: context.tool,
            call_id: context.call_id,
            thread_id: context.thread_id,
            task_id: context.task_id,
            tenant: context.tenant,
            violations: context.violations,
            extra: extra(context.extra),
        }
    }
}

impl From<ToolOutput> for raw::ToolOutput {
    fn from(output: ToolOutput) -> Self {
        Self {
            content: output.content.into_iter().map(Into::into).collect(),
            structured: text(output.structured),
            is_error: output.is_error,
            updates: output.updates.into_iter().map(Into::into).collect(),
            extra: raw_extra(output.extra),
        }
    }
}
