//! Builds checked graphs from their definitions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::channel::{Channel, Reducer};
use crate::check::context::{Age, CheckContext, unknown_plugin};
use crate::check::declaration::Declarations;
use crate::check::parse::ParsedDocument;
use crate::check::plugin_catalog::PluginCatalog;
use crate::check::problem::Problems;
use crate::check::subgraphs::{self, CheckedGraph, CheckedGraphs};
use crate::check::{edges, nodes, reachability, schemas};
use crate::definition::GraphDef;
use crate::graph::Graph;
use crate::id::{ChannelName, Digest, GraphName, PluginName};
use crate::limit::GraphLimits;
use crate::schema::{Schema, StepBudget};
use crate::suggest;

/// Checks and builds all graphs, in the order of their names. The result is incomplete if problems
/// were reported.
pub(super) fn graphs(
    document: &ParsedDocument,
    plugins: &dyn PluginCatalog,
    age: Age,
    problems: &mut Problems<'_>,
) -> Vec<Graph> {
    let names: BTreeSet<&GraphName> = document.graphs.keys().collect();
    let nodes = document.graphs.values().flat_map(|parsed| parsed.def.nodes.values());
    let nested: BTreeSet<&GraphName> = nodes.filter_map(|node| node.graph.as_ref()).collect();
    let mut checked = CheckedGraphs::new();
    let mut declarations = Declarations::new(plugins);
    let mut graphs = Vec::with_capacity(names.len());
    for (name, parsed) in subgraphs::topological_order(document, problems) {
        let path = format!("graphs.{name}");
        let mut ctx = CheckContext {
            path,
            def: &parsed.def,
            parsed,
            age,
            is_subgraph: nested.contains(name),
            graphs: &names,
            bad_schemas: BTreeSet::new(),
            declarations: BTreeMap::new(),
        };
        let graph = graph(name, &mut ctx, &mut declarations, &checked, problems);
        let Some(graph) = graph else { continue };
        let writes = schemas::writes(&ctx);
        let bad_schemas = ctx.bad_schemas;
        let subgraph = CheckedGraph { parsed, writes, bad_schemas, digest: graph.digest };
        checked.insert(name, subgraph);
        graphs.push(graph);
    }
    graphs.sort_by(|one, other| one.name.cmp(&other.name));
    graphs
}

/// Checks and builds a graph. Returns `None` if the definition cannot be serialized for its digest.
fn graph(
    name: &GraphName,
    ctx: &mut CheckContext<'_>,
    declarations: &mut Declarations<'_>,
    checked: &CheckedGraphs<'_>,
    problems: &mut Problems<'_>,
) -> Option<Graph> {
    let context = context(ctx, problems);
    let channels = channels(ctx, declarations.plugins, problems);
    let is_bad = |name: &&ChannelName| !channels.contains_key(*name);
    ctx.bad_schemas = ctx.def.channels.keys().filter(is_bad).cloned().collect();
    let nodes = nodes::nodes(ctx, declarations, checked, problems);
    check_limits(ctx, problems);
    let entry = edges::entry(ctx, problems);
    let edges = edges::edges(ctx, problems);
    let branches = edges::branches(ctx, problems);
    edges::check_breakpoints(ctx, problems);
    reachability::check(ctx, problems);
    reachability::check_cycles(ctx, problems);
    schemas::check(ctx, problems);
    Some(Graph {
        limits: GraphLimits::default(),
        name: name.clone(),
        digest: digest(name, ctx.def, checked)?,
        definition: ctx.def.clone(),
        context,
        channels,
        nodes,
        entry,
        edges,
        branches,
    })
}

fn context(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) -> Option<Schema> {
    let schema = ctx.def.context_schema.as_ref()?;
    match Schema::compile(schema) {
        Ok(schema) => Some(schema),
        Err(error) => {
            let path = format!("{}.context_schema", ctx.path);
            problems.add(path, format!("bad JSON schema: {error}"));
            None
        }
    }
}

fn channels(
    ctx: &CheckContext<'_>,
    plugins: &dyn PluginCatalog,
    problems: &mut Problems<'_>,
) -> BTreeMap<ChannelName, Channel> {
    let mut channels = BTreeMap::new();
    // All defaults share one budget, because they have the same author.
    let budget = StepBudget::default();
    for (name, def) in &ctx.def.channels {
        let path = format!("{}.channels.{name}", ctx.path);
        let channel = match Channel::new(name.clone(), def) {
            Ok(channel) => channel,
            Err(error) => {
                problems.add(format!("{path}.schema"), format!("bad JSON schema: {error}"));
                continue;
            }
        };
        schemas::check_channel(&path, def, &channel, &budget, problems);
        if let Reducer::Plugin { plugin, reducer } = &channel.reducer {
            check_reducer(&format!("{path}.reducer"), plugin, reducer, plugins, problems);
        }
        channels.insert(name.clone(), channel);
    }
    channels
}

/// Reports a reducer of a plugin that does not exist.
fn check_reducer(
    path: &str,
    plugin: &PluginName,
    reducer: &str,
    plugins: &dyn PluginCatalog,
    problems: &mut Problems<'_>,
) {
    if problems.is_full() {
        return;
    }
    if !plugins.has_plugin(plugin) {
        unknown_plugin(path, plugin, plugins, problems);
    } else if !plugins.has_reducer(plugin, reducer) {
        let known = plugins.reducers(plugin);
        let what = format!("reducers of plugin `{plugin}`");
        let hint = suggest::hint(reducer, &what, known.iter().map(String::as_str));
        let message = format!("plugin `{plugin}` has no reducer `{reducer}`");
        problems.add_with_hint(path, message, hint);
    }
}

fn check_limits(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    if ctx.def.recursion_limit == Some(0) {
        problems.add(format!("{}.recursion_limit", ctx.path), "must be at least 1");
    }
    if ctx.def.max_concurrency == Some(0) {
        problems.add(format!("{}.max_concurrency", ctx.path), "must be at least 1");
    }
    if ctx.def.interrupt_ttl.is_some_and(|ttl| ttl.as_ms() == 0) {
        problems.add(format!("{}.interrupt_ttl", ctx.path), "must be longer than zero");
    }
}

/// Returns the digest of the definition and of the digests of its subgraphs. The keys of the
/// definition are sorted before they are hashed, so their order in the document does not change the
/// digest.
fn digest(name: &GraphName, def: &GraphDef, checked: &CheckedGraphs<'_>) -> Option<Digest> {
    let names = def.nodes.values().filter_map(|node| node.graph.as_ref());
    let digests: BTreeMap<&GraphName, Digest> = names
        .filter_map(|graph| checked.get(graph).map(|subgraph| (graph, subgraph.digest)))
        .collect();
    let mut whole = json!({ "name": name, "graph": serde_json::to_value(def).ok()? });
    if !digests.is_empty() {
        whole["nested"] = serde_json::to_value(digests).ok()?;
    }
    Some(Digest::of(canonical(&whole).to_string().as_bytes()))
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> =
                fields.iter().map(|(key, value)| (key, canonical(value))).collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        other => other.clone(),
    }
}
