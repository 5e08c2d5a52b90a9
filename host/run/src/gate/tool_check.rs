//! Checks of the arguments and outputs of the tools of plugins.

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::schema::{Formats, SchemaError};
use wattle_graph::tool::{ToolOutput, ToolRequest};

use crate::blocking::{are_large_values, block_in_place_in_turn};
use crate::gate::GuestEnv;
use crate::grant::Grants;
use crate::hostcall::tools::ToolInfo;
use crate::json::{approx_bytes, check_depth};
use crate::limit;

/// Returns the violations of the arguments schema, if the tool accepts them. `env` is the
/// environment of the caller.
///
/// # Errors
///
/// `invalid`, with the violations, if the tool does not accept them; `invalid` and `limit` for a
/// schema that cannot be used.
pub(crate) async fn check_arguments(
    env: &GuestEnv,
    info: &ToolInfo,
    request: &ToolRequest,
) -> Result<Vec<String>, Failure> {
    let subject = format!("the arguments schema of tool `{}`", request.tool);
    let violations = violations(env, &subject, &info.arguments_schema, &request.arguments).await?;
    if violations.is_empty() || info.accepts_invalid {
        return Ok(violations);
    }
    let (tool, list) = (&request.tool, violations.join("; "));
    let text = format!("the arguments of `{tool}` do not match its schema: {list}");
    Err(Failure::new(code::INVALID, text).with_details(json!({ "violations": violations })))
}

/// Returns the violations of a schema by a value, one sentence each. `subject` is the schema, for
/// messages.
///
/// # Errors
///
/// `invalid` and `limit` for a schema that cannot be used.
pub(crate) async fn violations(
    env: &GuestEnv,
    subject: &str,
    schema: &Value,
    value: &Value,
) -> Result<Vec<String>, Failure> {
    let owner = env.caller.owner;
    let schema = env.schemas.compile(owner, schema, Formats::OfDraft).await;
    let schema = schema.map_err(|error| match error {
        SchemaError::Limit(exceeded) => exceeded.of(subject).to_failure(),
        error => Failure::new(code::INVALID, format!("{subject} is invalid: {error}")),
    })?;
    let is_long = schema.is_expensive() || are_large_values([value]);
    let violations =
        block_in_place_in_turn(owner, is_long, || schema.violations(value, limit::TOOL_VIOLATIONS));
    violations.await.map_err(|exceeded| exceeded.of(subject).to_failure())
}

/// Returns the output of a tool if it is within the limits.
///
/// # Errors
///
/// `invalid` for an output that is nested too deeply; `limit` if it has more bytes than `grants`
/// allow the plugin.
pub(crate) fn check_output_size(
    output: ToolOutput,
    tool: &str,
    grants: &Grants,
    (app, plugin): (&AppName, &PluginName),
) -> Result<ToolOutput, Failure> {
    let value = serde_json::to_value(&output).map_err(|error| {
        Failure::internal(format!("cannot serialize the tool's output: {error}"))
    })?;
    check_depth(format_args!("the output of the tool `{tool}`"), &value)?;
    let (bytes, allowed) = (approx_bytes(&value), grants.limits.output_bytes);
    if bytes <= allowed {
        return Ok(output);
    }
    let raise = grants.raise_limit(app, plugin, "output");
    Err(Failure::new(
        code::LIMIT,
        format!(
            "the output of the tool `{tool}` is {bytes} bytes, more than the limit of {allowed}; \
             request less, or {raise}"
        ),
    )
    .with_details(json!({ "limit": "output", "allowed": allowed })))
}
