//! Lets a component describe itself: once, without a gate, within small limits.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use wattle_graph::id::{NodeName, PluginName};
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::{Ended, NodeInfo, ReducerInfo, Route, ToolHints, ToolInfo};

use crate::bindings::exports::wattle::plugin::{node, reducer, tool, web};
use crate::call::{Call, Live};
use crate::code::Code;
use crate::ended::Place;
use crate::json::extra;
use crate::load::fault::{Fault, missing, too_large};
use crate::load::text::clean;

/// CPU time for the description, in milliseconds. A component of Python needs part of it to start.
const CPU_MS: u64 = 1_000;

/// Wall time for the description. It is far longer than a loaded machine needs.
const WALL: Duration = Duration::from_secs(15);

/// Maximum size of the description, in bytes.
const LIFT_BYTES: u64 = 4 << 20;

/// Maximum number of nodes, tools, reducers or routes of one plugin.
const ITEMS: usize = 1_000;

/// Maximum length of a description, in characters.
const DOC_CHARS: usize = 4_000;

/// Maximum length of a tool's name and of an HTTP method, in characters.
const WORD_CHARS: usize = 64;

/// Maximum length of a route's path, in characters.
const PATH_CHARS: usize = 512;

/// The description of a component.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) nodes: Vec<NodeInfo>,
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) reducers: Vec<ReducerInfo>,
    pub(crate) routes: Vec<Route>,
}

/// The results of the describing functions, not checked yet.
#[derive(Default)]
struct Answers {
    nodes: Vec<node::NodeInfo>,
    tools: Vec<tool::ToolInfo>,
    reducers: Vec<reducer::ReducerInfo>,
    routes: Vec<web::Route>,
}

/// Returns the description that a component gives of itself.
pub(crate) async fn describe(code: &Code, name: &PluginName) -> Result<Described, Fault> {
    match tokio::time::timeout(WALL, describe_in_time(code, name)).await {
        Ok(described) => described,
        Err(_) => Err(bad(&format!("its description took more than {} seconds", WALL.as_secs()))),
    }
}

async fn describe_in_time(code: &Code, name: &PluginName) -> Result<Described, Fault> {
    let limits = Limits { cpu_ms: CPU_MS, lift_bytes: LIFT_BYTES, ..Limits::default() };
    let place = Place { plugin: name.as_str(), what: "the description", granted: false };
    let call = Call { code, gate: None, limits: &limits, place };
    let mut live = call.start().await.map_err(failed)?;
    check_types(&mut live, code)?;
    let done = ask(&mut live, code).await;
    let answers = live.settle(done).map_err(failed)?;
    Ok(Described {
        nodes: checked("nodes", answers.nodes, into_node, |node| &node.name)?,
        tools: checked("tools", answers.tools, into_tool, |tool| &tool.name)?,
        reducers: checked("reducers", answers.reducers, into_reducer, |reducer| &reducer.name)?,
        routes: into_routes(answers.routes)?,
    })
}

/// Checks the types of the exported functions. They are compared when the functions are looked up
/// in an instance.
fn check_types(live: &mut Live<'_>, code: &Code) -> Result<(), Fault> {
    let Live { store, instance, .. } = live;
    let fault = |error: wasmtime::Error| missing(&format!("{error:#}"));
    if let Some(export) = &code.exports.node {
        export.describe(&mut *store, instance).map_err(fault)?;
        export.run(&mut *store, instance).map_err(fault)?;
    }
    if let Some(indices) = &code.exports.tool {
        indices.load(&mut *store, instance).map_err(fault)?;
    }
    if let Some(indices) = &code.exports.reducer {
        indices.load(&mut *store, instance).map_err(fault)?;
    }
    if let Some(indices) = &code.exports.web {
        indices.load(&mut *store, instance).map_err(fault)?;
    }
    Ok(())
}

async fn ask(live: &mut Live<'_>, code: &Code) -> wasmtime::Result<Answers> {
    let Live { store, instance, .. } = live;
    let mut answers = Answers::default();
    if let Some(export) = &code.exports.node {
        let describe = export.describe(&mut *store, instance)?;
        (answers.nodes,) = describe.call_async(&mut *store, ()).await?;
    }
    if let Some(indices) = &code.exports.tool {
        let guest = indices.load(&mut *store, instance)?;
        answers.tools = guest.call_list(&mut *store).await?;
    }
    if let Some(indices) = &code.exports.reducer {
        let guest = indices.load(&mut *store, instance)?;
        answers.reducers = guest.call_reducers(&mut *store).await?;
    }
    if let Some(indices) = &code.exports.web {
        let guest = indices.load(&mut *store, instance)?;
        answers.routes = guest.call_routes(&mut *store).await?;
    }
    Ok(answers)
}

fn failed(ended: Ended) -> Fault {
    let message = match ended {
        Ended::Failure(failure)
        | Ended::Trap(failure)
        | Ended::Limit(failure)
        | Ended::Host(failure) => failure.message,
        Ended::Unwound(_) => "the host ended its description".to_owned(),
    };
    Fault::new(
        "describe",
        &message,
        "the functions that describe a plugin must return within a second of CPU time, and must \
         not call an import",
    )
}

fn bad(message: &str) -> Fault {
    Fault::new("describe", message, "correct the plugin's description and build it again")
}

/// Converts items and checks that there are not too many and that their names are unique.
fn checked<A, B>(
    what: &str,
    items: Vec<A>,
    convert: fn(A) -> Result<B, Fault>,
    name: fn(&B) -> &String,
) -> Result<Vec<B>, Fault> {
    if items.len() > ITEMS {
        return Err(too_large(what, items.len() as u64, ITEMS as u64));
    }
    let items: Vec<B> = items.into_iter().map(convert).collect::<Result<_, _>>()?;
    let mut seen = BTreeSet::new();
    match items.iter().map(name).find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(bad(&format!("two of its {what} have the name `{twice}`"))),
        None => Ok(items),
    }
}

fn into_node(info: node::NodeInfo) -> Result<NodeInfo, Fault> {
    let name = NodeName::new(&info.name).map_err(|error| bad(&error.to_string()))?;
    ascii("node", name.as_str())?;
    let config_schema = extra(&info.extra, "config-schema");
    Ok(NodeInfo {
        config_schema: config_schema
            .map(|text| schema(text, &info.name, "config-schema"))
            .transpose()?,
        input_schema: schema(&info.input_schema, &info.name, "input-schema")?,
        output_schema: schema(&info.output_schema, &info.name, "output-schema")?,
        name: name.into(),
        doc: clean(&info.doc, DOC_CHARS),
    })
}

/// Rejects a name with other characters than ASCII. A letter of another script can look like an
/// ASCII letter, so that two names look the same.
fn ascii(what: &str, name: &str) -> Result<(), Fault> {
    match name.chars().find(|c| !c.is_ascii()) {
        None => Ok(()),
        Some(other) => Err(bad(&format!(
            "its {what} name `{}` has the character U+{:04X}; names consist of ASCII letters, \
             digits, `_`, `-` and `.`",
            name.escape_default(),
            u32::from(other)
        ))),
    }
}

fn into_tool(info: tool::ToolInfo) -> Result<ToolInfo, Fault> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=WORD_CHARS).contains(&info.name.len()) || !info.name.chars().all(allowed) {
        let name = clean(&info.name, WORD_CHARS);
        return Err(bad(&format!("`{name}` is not a tool name: 1 to 64 of `[a-zA-Z0-9_-]`")));
    }
    Ok(ToolInfo {
        arguments_schema: schema(&info.arguments_schema, &info.name, "arguments-schema")?,
        name: info.name,
        description: clean(&info.description, DOC_CHARS),
        accepts_invalid: info.accepts_invalid,
        hints: extra(&info.extra, "hints").map(into_hints).unwrap_or_default(),
        reference: None,
        unavailable: None,
    })
}

/// Parses the hints of a tool. The host relies on a hint, so a hint that cannot be parsed is
/// ignored.
fn into_hints(text: &str) -> ToolHints {
    let hints: Value = serde_json::from_str(text).unwrap_or_default();
    let says = |name| hints.get(name).and_then(Value::as_bool).unwrap_or(false);
    ToolHints { read_only: says("read_only"), idempotent: says("idempotent") }
}

fn into_reducer(info: reducer::ReducerInfo) -> Result<ReducerInfo, Fault> {
    let name = NodeName::new(&info.name)
        .map_err(|error| bad(&error.to_string().replace("node name", "reducer name")))?;
    ascii("reducer", name.as_str())?;
    Ok(ReducerInfo { name: name.into(), doc: clean(&info.doc, DOC_CHARS) })
}

fn into_routes(routes: Vec<web::Route>) -> Result<Vec<Route>, Fault> {
    if routes.len() > ITEMS {
        return Err(too_large("routes", routes.len() as u64, ITEMS as u64));
    }
    let mut seen = BTreeSet::new();
    for route in routes {
        let route = into_route(route)?;
        if let Some(twice) = seen.replace(route) {
            return Err(bad(&format!("it has the route {} {} twice", twice.method, twice.path)));
        }
    }
    Ok(seen.into_iter().collect())
}

fn into_route(route: web::Route) -> Result<Route, Fault> {
    let web::Route { method, path, .. } = route;
    let good_method =
        (1..=WORD_CHARS).contains(&method.len()) && method.chars().all(|c| c.is_ascii_uppercase());
    let good_path = path.starts_with('/')
        && path.chars().count() <= PATH_CHARS
        && path.chars().all(|c| c.is_ascii_graphic());
    if good_method && good_path {
        return Ok(Route { method, path });
    }
    let (method, path) = (clean(&method, WORD_CHARS), clean(&path, PATH_CHARS));
    Err(bad(&format!(
        "`{method} {path}` is not a route: the method is upper case, and the path starts with `/` \
         and has ASCII characters only, and no spaces"
    )))
}

fn schema(text: &str, name: &str, field: &str) -> Result<Value, Fault> {
    let schema: Value = serde_json::from_str(text).map_err(|error| {
        bad(&format!("`{field}` of `{name}` is not a valid JSON document: {error}"))
    })?;
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(schema),
        _ => Err(bad(&format!("`{field}` of `{name}` is not a JSON Schema: it is not an object"))),
    }
}
