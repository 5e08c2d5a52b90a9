//! Builds checked graphs from their definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::channel::{Channel, Reducer};
use crate::check::Age;
use crate::check::declaration::{Declaration, Declarations};
use crate::check::parse::{ParsedDocument, ParsedGraph};
use crate::check::plugin_catalog::PluginCatalog;
use crate::check::problem::Problems;
use crate::check::subgraphs::{self, CheckedGraph, CheckedGraphs};
use crate::check::{edges, nodes, reachability, schemas};
use crate::definition::GraphDef;
use crate::graph::Graph;
use crate::id::{ChannelName, Digest, GraphName, NodeName, PluginName};
use crate::limit::GraphLimits;
use crate::schema::{Schema, StepBudget};
use crate::suggest;

/// A graph under construction: the definition with the context of its checks.
pub(super) struct CheckContext<'d> {
    pub(super) path: String,
    pub(super) def: &'d GraphDef,
    pub(super) parsed: &'d ParsedGraph,
    pub(super) age: Age,
    /// Whether a node of the document runs the graph.
    pub(super) is_subgraph: bool,
    /// All graphs of the document.
    pub(super) graphs: &'d BTreeSet<&'d GraphName>,
    /// Channels whose schemas cannot be compiled. Nothing is compared with these schemas.
    pub(super) bad_schemas: BTreeSet<ChannelName>,
    /// What the nodes declare.
    pub(super) declarations: BTreeMap<NodeName, Arc<Declaration>>,
}

impl CheckContext<'_> {
    /// Returns true if the definition has a node of that name, valid or not.
    pub(super) fn has_node(&self, name: &str) -> bool {
        self.def.nodes.contains_key(name) || self.parsed.invalid_names.contains(name)
    }

    /// Returns true if the definition has a channel of that name, valid or not.
    pub(super) fn has_channel(&self, name: &str) -> bool {
        self.def.channels.contains_key(name) || self.parsed.invalid_names.contains(name)
    }

    /// Reports a problem if no node has the name.
    pub(super) fn require_node(&self, path: &str, name: &NodeName, problems: &mut Problems<'_>) {
        if self.has_node(name.as_str()) || problems.is_full() {
            return;
        }
        let known = self.def.nodes.keys().map(NodeName::as_str);
        let hint = suggest::hint(name.as_str(), "nodes of this graph", known);
        problems.add_with_hint(path, format!("there is no node `{name}`"), hint);
    }

    /// Returns the hint for an unknown channel.
    pub(super) fn channel_hint(&self, wanted: &str) -> String {
        let known = self.def.channels.keys().map(ChannelName::as_str);
        suggest::hint(wanted, "channels of this graph", known)
    }
}

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
    // The defaults are one input of the author.
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

/// Reports a plugin that does not exist.
pub(super) fn unknown_plugin(
    path: &str,
    plugin: &PluginName,
    plugins: &dyn PluginCatalog,
    problems: &mut Problems<'_>,
) {
    if problems.is_full() {
        return;
    }
    let known = plugins.plugins();
    let known = known.iter().map(PluginName::as_str);
    let hint = suggest::hint(plugin.as_str(), "plugins that the app can use", known);
    problems.add_with_hint(path, format!("there is no plugin `{plugin}`"), hint);
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

/// Returns the digest of the definition and of the digests of its subgraphs. Keys are sorted, so
/// the order in which an author writes them does not matter.
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
