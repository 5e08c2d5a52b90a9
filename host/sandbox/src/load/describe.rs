//! Lets a component describe itself: once, without a gate, within small limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use wattle_graph::check::{ChannelRef, NodeReads};
use wattle_graph::failure::Failure;
use wattle_graph::id::{NodeName, PluginName};
use wattle_run::gate::AwaitedBy;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{
    GuestError, NodeInfo, ReducerInfo, RefusedFunction, ToolHints, ToolInfo, WebRoute,
};

use crate::bindings::exports::wattle::plugin::{node, reducer, tool, web};
use crate::compiled::{CompiledComponent, NodeExport, ReducerExport, ToolExport, WebExport};
use crate::export::{GuestCall, GuestInstance};
use crate::guest_error::{CalledFunction, Callee};
use crate::guest_output::last_lines;
use crate::guest_pool::PoolOwner;
use crate::json::extra_field;
use crate::load::description::{
    MAX_DOC_CHARS, MAX_ITEMS, MAX_NAME_CHARS, Schemas, invalid_description,
};
use crate::load::rejection::{Rejection, missing_export, too_large};
use crate::load::route::into_routes;
use crate::load::text::sanitize;

/// CPU time for the description, in milliseconds. A component of Python needs a part of this time
/// to start.
const CPU_MS: u64 = 1_000;

/// Maximum wall time of the guest call that returns the description. The call takes far less, even
/// on a machine whose cores are busy.
const WALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum size of the description, in bytes.
const LIFT_BYTES: u64 = 4 << 20;

/// Maximum length of the hints of a tool, in bytes. Longer hints are ignored.
const MAX_HINTS_BYTES: usize = 1 << 10;

/// Maximum length of the channels that a node declares it reads, in bytes. The limit allows some
/// forty channels.
const MAX_READS_BYTES: usize = 1 << 10;

/// What `reads` of a node looks like, for messages.
const READS_EXAMPLE: &str =
    r#"{"channels":[{"channel":"messages"}],"conversation":{"channel":"messages"}}"#;

/// The description of a component.
#[derive(Debug, Default)]
pub(crate) struct PluginDescription {
    pub(crate) nodes: Vec<NodeInfo>,
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) reducers: Vec<ReducerInfo>,
    pub(crate) routes: Vec<WebRoute>,
    /// Functions of a typed component that cannot be tools.
    pub(crate) refused: Vec<RefusedFunction>,
}

/// The unchecked results of the functions with which a component describes itself: `describe`,
/// `list`, `reducers` and `routes`.
#[derive(Default)]
struct RawDescription {
    nodes: Vec<node::NodeInfo>,
    tools: Vec<tool::ToolInfo>,
    reducers: Vec<reducer::ReducerInfo>,
    routes: Vec<web::Route>,
}

/// Returns the description that a component gives of itself.
pub(crate) async fn describe(
    code: &CompiledComponent,
    name: &PluginName,
) -> Result<PluginDescription, Rejection> {
    match tokio::time::timeout(WALL_TIMEOUT, describe_without_timeout(code, name)).await {
        Ok(described) => described,
        Err(_) => Err(invalid_description(&format!(
            "its description took more than {} seconds",
            WALL_TIMEOUT.as_secs()
        ))),
    }
}

async fn describe_without_timeout(
    code: &CompiledComponent,
    name: &PluginName,
) -> Result<PluginDescription, Rejection> {
    let limits = Limits { cpu_ms: CPU_MS, lift_bytes: LIFT_BYTES, ..Limits::default() };
    let callee = Callee { plugin: name, function: CalledFunction::Description, granted: None };
    let (owner, awaited_by) = (Arc::new(PoolOwner::Descriptions), AwaitedBy::Client);
    let (limits, given) = (&limits, None);
    let call = GuestCall { code, gate: None, owner, awaited_by, limits, callee, given };
    let mut live = call.instantiate().await.map_err(from_guest_error)?;
    check_types(&mut live, code)?;
    let done = call_exports(&mut live, code).await;
    let raw = live.finish(done).await.map_err(from_guest_error)?;
    let mut schemas = Schemas::new();
    let nodes = |node| into_node(node, &mut schemas);
    let nodes = convert_unique("nodes", raw.nodes, nodes, |node| &node.name)?;
    let tools = |tool| into_tool(tool, &mut schemas);
    let tools = convert_unique("tools", raw.tools, tools, |tool| &tool.name)?;
    Ok(PluginDescription {
        nodes,
        tools,
        reducers: convert_unique("reducers", raw.reducers, into_reducer, |reducer| &reducer.name)?,
        routes: into_routes(raw.routes, &mut schemas)?,
        refused: Vec::new(),
    })
}

/// Checks the types of the exported functions. wasmtime compares the types when a function is
/// looked up in an instance for the first time. Calls do not check them again.
fn check_types(live: &mut GuestInstance<'_>, code: &CompiledComponent) -> Result<(), Rejection> {
    let GuestInstance { store, instance, .. } = live;
    let rejection = |error: wasmtime::Error| missing_export(&format!("{error:#}"));
    if let Some(NodeExport { describe, run }) = &code.exports.node {
        describe.typed(store, instance).map_err(rejection)?;
        run.typed(store, instance).map_err(rejection)?;
    }
    if let Some(ToolExport { list, call }) = &code.exports.tool {
        list.typed(store, instance).map_err(rejection)?;
        call.typed(store, instance).map_err(rejection)?;
    }
    if let Some(ReducerExport { reducers, reduce }) = &code.exports.reducer {
        reducers.typed(store, instance).map_err(rejection)?;
        reduce.typed(store, instance).map_err(rejection)?;
    }
    if let Some(WebExport { routes, handle }) = &code.exports.web {
        routes.typed(store, instance).map_err(rejection)?;
        handle.typed(store, instance).map_err(rejection)?;
    }
    Ok(())
}

async fn call_exports(
    live: &mut GuestInstance<'_>,
    code: &CompiledComponent,
) -> wasmtime::Result<RawDescription> {
    let mut raw = RawDescription::default();
    if let Some(export) = &code.exports.node {
        (raw.nodes,) = live.call(&export.describe, ()).await?;
    }
    if let Some(export) = &code.exports.tool {
        (raw.tools,) = live.call(&export.list, ()).await?;
    }
    if let Some(export) = &code.exports.reducer {
        (raw.reducers,) = live.call(&export.reducers, ()).await?;
    }
    if let Some(export) = &code.exports.web {
        (raw.routes,) = live.call(&export.routes, ()).await?;
    }
    Ok(raw)
}

fn from_guest_error(ended: GuestError) -> Rejection {
    let message = match ended {
        GuestError::Failure(failure)
        | GuestError::Trap(failure)
        | GuestError::Limit(failure)
        | GuestError::Host(failure) => with_last_line(failure),
        GuestError::Unwound(_) => "the host ended its description".to_owned(),
    };
    Rejection::new(
        "describe",
        &message,
        "the functions that describe a plugin must return within a second of CPU time, and must \
         not call an import of `wattle:plugin` other than `log`",
    )
}

/// Returns the message of a failure. A rejection has no details, so the last line that the guest
/// wrote follows, unless the message already has that line or the cause.
fn with_last_line(failure: Failure) -> String {
    let details = failure.details.unwrap_or_default();
    let line = |stream: &str| last_lines(details["output"][stream].as_str()?, 1);
    match line("stderr").or_else(|| line("stdout")) {
        Some(last) if details["cause"].is_null() && !failure.message.contains(&last) => {
            format!("{}; the last line of its output is `{last}`", failure.message)
        }
        _ => failure.message,
    }
}

/// Converts items and checks that there are not too many and that their names are unique.
fn convert_unique<A, B>(
    what: &str,
    items: Vec<A>,
    convert: impl FnMut(A) -> Result<B, Rejection>,
    name: fn(&B) -> &String,
) -> Result<Vec<B>, Rejection> {
    if items.len() > MAX_ITEMS {
        return Err(too_large(what, items.len() as u64, MAX_ITEMS as u64));
    }
    let items: Vec<B> = items.into_iter().map(convert).collect::<Result<_, _>>()?;
    let mut seen = BTreeSet::new();
    match items.iter().map(name).find(|name| !seen.insert(name.as_str())) {
        Some(twice) => {
            Err(invalid_description(&format!("two of its {what} have the name `{twice}`")))
        }
        None => Ok(items),
    }
}

fn into_node(info: node::NodeInfo, schemas: &mut Schemas) -> Result<NodeInfo, Rejection> {
    let name =
        NodeName::new(&info.name).map_err(|error| invalid_description(&error.to_string()))?;
    check_ascii("node", name.as_str())?;
    let config_schema = extra_field(&info.extra, "config-schema");
    let input_schema = schemas.parse(&info.input_schema, &info.name, "input-schema")?;
    Ok(NodeInfo {
        config_schema: config_schema
            .map(|text| schemas.parse(text, &info.name, "config-schema"))
            .transpose()?,
        reads: extra_field(&info.extra, "reads")
            .map(|text| into_reads(text, &info.name, &input_schema))
            .transpose()?,
        input_schema,
        output_schema: schemas.parse(&info.output_schema, &info.name, "output-schema")?,
        name: name.into(),
        doc: sanitize(&info.doc, MAX_DOC_CHARS),
    })
}

/// Parses the channels that a node declares it reads. The host relies on them to leave values out
/// of the input, so what cannot be parsed is rejected rather than ignored.
fn into_reads(text: &str, node: &str, input_schema: &Value) -> Result<NodeReads, Rejection> {
    if text.len() > MAX_READS_BYTES {
        let what = format!("bytes of `reads` of `{node}`");
        return Err(too_large(&what, text.len() as u64, MAX_READS_BYTES as u64));
    }
    let invalid = |problem: &str| {
        invalid_description(&format!(
            "`reads` of `{node}` {problem}; the conversation is one of the channels, as in \
             `{READS_EXAMPLE}`"
        ))
    };
    let reads: NodeReads = serde_json::from_str(text)
        .map_err(|error| invalid(&format!("is no object of channels in JSON: {error}")))?;
    let is_read = |conversation: &ChannelRef| match &reads.channels {
        Some(channels) => channels.contains(conversation),
        None => input_schema.get("properties").is_none(),
    };
    if let Some(conversation) = &reads.conversation
        && !is_read(conversation)
    {
        let problem = match &reads.channels {
            Some(_) => "has a `conversation` that is not among its `channels`",
            None => "has a `conversation`, but no `channels`",
        };
        return Err(invalid(problem));
    }
    Ok(reads)
}

/// Rejects a name with other characters than ASCII. A letter of another script can look like an
/// ASCII letter, so that two names look the same.
fn check_ascii(what: &str, name: &str) -> Result<(), Rejection> {
    match name.chars().find(|c| !c.is_ascii()) {
        None => Ok(()),
        Some(other) => Err(invalid_description(&format!(
            "its {what} name `{}` has the character U+{:04X}; names consist of ASCII letters, \
             digits, `_`, `-` and `.`",
            name.escape_default(),
            u32::from(other)
        ))),
    }
}

fn into_tool(info: tool::ToolInfo, schemas: &mut Schemas) -> Result<ToolInfo, Rejection> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=MAX_NAME_CHARS).contains(&info.name.len()) || !info.name.chars().all(allowed) {
        let name = sanitize(&info.name, MAX_NAME_CHARS);
        return Err(invalid_description(&format!(
            "`{name}` is not a tool name; a name has 1 to {MAX_NAME_CHARS} characters of \
             `[a-zA-Z0-9_-]`"
        )));
    }
    Ok(ToolInfo {
        arguments_schema: schemas.parse(&info.arguments_schema, &info.name, "arguments-schema")?,
        name: info.name,
        description: sanitize(&info.description, MAX_DOC_CHARS),
        accepts_invalid: info.accepts_invalid,
        hints: extra_field(&info.extra, "hints")
            .filter(|text| text.len() <= MAX_HINTS_BYTES)
            .map(into_hints)
            .unwrap_or_default(),
        reference: None,
        unavailable: None,
    })
}

/// Parses the hints of a tool. The host relies on hints, so a hint that cannot be parsed counts as
/// false.
fn into_hints(text: &str) -> ToolHints {
    let hints: Value = serde_json::from_str(text).unwrap_or_default();
    let says = |name| hints.get(name).and_then(Value::as_bool).unwrap_or(false);
    ToolHints { read_only: says("read_only"), idempotent: says("idempotent") }
}

fn into_reducer(info: reducer::ReducerInfo) -> Result<ReducerInfo, Rejection> {
    let name = NodeName::new(&info.name).map_err(|error| {
        invalid_description(&error.to_string().replace("node name", "reducer name"))
    })?;
    check_ascii("reducer", name.as_str())?;
    Ok(ReducerInfo { name: name.into(), doc: sanitize(&info.doc, MAX_DOC_CHARS) })
}
