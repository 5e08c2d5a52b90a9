//! The export `node`.

use crate::bindings::imports::wattle::plugin::types;
use crate::bindings::node::exports::wattle::plugin::node as raw;
use crate::export::NodeEntry;
use crate::failure::Failure;
use crate::json::JsonText;
use crate::node::{Context, Decision, Send, Update};
use crate::wire::convert::{extra, raw_extra, value};
use crate::wire::panic::report_panics;

/// Returns the descriptions of all nodes.
pub fn describe(entries: &[NodeEntry]) -> Vec<raw::NodeInfo> {
    report_panics();
    let info = |entry: &NodeEntry| {
        let function = (entry.function)();
        raw::NodeInfo {
            name: entry.name.to_owned(),
            doc: entry.doc.to_owned(),
            input_schema: function.input_schema().to_string(),
            output_schema: function.output_schema().to_string(),
            extra: described(entry),
        }
    };
    entries.iter().map(info).collect()
}

/// Returns the extension fields of a description.
fn described(entry: &NodeEntry) -> Vec<(String, String)> {
    let schema = entry.config_schema.map(|schema| ("config-schema", schema()));
    let reads = entry.reads.map(|reads| ("reads", reads.describe()));
    let fields = schema.into_iter().chain(reads);
    fields.map(|(key, value)| (key.to_owned(), value.to_string())).collect()
}

/// Runs the node that the context names. Fails with `not-found` if it does not exist.
pub fn run_named(
    entries: &[NodeEntry],
    context: raw::TaskContext,
    input: &str,
) -> Result<raw::Outcome, types::Failure> {
    report_panics();
    let context = Context::from(context);
    let entry = entries
        .iter()
        .find(|entry| entry.name == context.node)
        .ok_or_else(|| Failure::not_found(format!("the plugin has no node `{}`", context.node)))?;
    Ok((entry.function)().run(&context, input)?.into())
}

impl From<raw::TaskContext> for Context {
    fn from(context: raw::TaskContext) -> Self {
        Self {
            node: context.node,
            graph: context.graph,
            thread_id: context.thread_id,
            run_id: context.run_id,
            task_id: context.task_id,
            step: context.step,
            attempt: context.attempt,
            remaining_steps: context.remaining_steps,
            tenant: context.tenant,
            context: value(&context.context),
            extra: extra(context.extra),
        }
    }
}

impl From<Decision<JsonText>> for raw::Outcome {
    fn from(decision: Decision<JsonText>) -> Self {
        let send = |send: Send<JsonText>| types::Send {
            node: send.node,
            input: send.input.into_string(),
            extra: raw_extra(send.extra),
        };
        Self {
            updates: decision.updates.into_iter().map(Into::into).collect(),
            goto: decision.goto,
            sends: decision.sends.into_iter().map(send).collect(),
            extra: raw_extra(decision.extra),
        }
    }
}

impl<V: Into<JsonText>> From<Update<V>> for types::Update {
    fn from(update: Update<V>) -> Self {
        let value: JsonText = update.value.into();
        Self { channel: update.channel, value: value.into_string(), overwrite: update.overwrite }
    }
}
