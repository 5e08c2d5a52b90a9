//! Checks nodes, and builds them with the default policies of the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::context::{Age, CheckContext, unknown_plugin};
use crate::check::declaration::{Declaration, Declarations};
use crate::check::plugin_catalog::PluginCatalog;
use crate::check::problem::Problems;
use crate::check::subgraphs::{self, CheckedGraphs, SubgraphDeclarations};
use crate::check::{policies, schemas};
use crate::definition::NodeDef;
use crate::graph::{Node, NodeConversation, NodeKind, RetryPolicy, TimeoutPolicy};
use crate::id::{ChannelName, END, NodeName, PluginName};
use crate::suggest;

/// Checks and builds the nodes of a graph. Adds the declarations of the nodes to
/// `ctx.declarations`.
pub(super) fn nodes(
    ctx: &mut CheckContext<'_>,
    declarations: &mut Declarations<'_>,
    checked: &CheckedGraphs<'_>,
    problems: &mut Problems<'_>,
) -> BTreeMap<NodeName, Node> {
    policies::check_defaults(ctx, problems);
    let mut nodes = BTreeMap::new();
    let mut of_subgraphs = SubgraphDeclarations::new();
    for (name, def) in &ctx.def.nodes {
        let path = format!("{}.nodes.{name}", ctx.path);
        check(ctx, &path, name, def, problems);
        let made = match &def.graph {
            Some(_) => subgraph_body(ctx, &path, def, checked, &mut of_subgraphs, problems),
            None => plugin_body(ctx, &path, name, def, declarations, problems),
        };
        let Some((body, declared)) = made else { continue };
        nodes.insert(name.clone(), node(ctx, name, def, body, &declared));
        ctx.declarations.insert(name.clone(), declared);
    }
    nodes
}

fn node(
    ctx: &CheckContext<'_>,
    name: &NodeName,
    def: &NodeDef,
    body: NodeKind,
    declared: &Declaration,
) -> Node {
    let defaults = &ctx.def.defaults;
    let retry = if def.retry.is_empty() { &defaults.retry } else { &def.retry };
    let timeout = def.timeout.as_ref().or(defaults.timeout.as_ref());
    let cache = def.cache.as_ref().or(defaults.cache.as_ref());
    let named = declared.reads(def.with.as_ref());
    Node {
        name: name.clone(),
        body,
        retries: retry.iter().map(RetryPolicy::from).collect(),
        timeout: timeout.map(TimeoutPolicy::from).unwrap_or_default(),
        cache: cache.and_then(policies::cache),
        on_error: policies::on_error(ctx.def, name).cloned(),
        defer: def.defer,
        conversation: conversation(def, declared, named.as_deref()),
        reads: named.map(|named| reads(ctx, named)),
        config: Arc::new(def.with.clone().unwrap_or_default().into()),
        doc: if def.doc.is_empty() { declared.doc().to_owned() } else { def.doc.clone() },
    }
}

/// Returns the channels of the graph among those that a node declares it reads. A plugin does not
/// know the graphs that use it, so a node may declare names that are no channels of the graph.
fn reads(ctx: &CheckContext<'_>, named: Arc<BTreeSet<ChannelName>>) -> Arc<BTreeSet<ChannelName>> {
    let is_channel = |name: &&ChannelName| ctx.def.channels.contains_key(*name);
    if named.iter().all(|name| is_channel(&name)) {
        return named;
    }
    Arc::new(named.iter().filter(is_channel).cloned().collect())
}

/// Returns the conversation of a node, in a channel among those that it declares it reads; `None`
/// stands for all. The graph need not have the channel: a node that gets only sends, such as
/// `tools` of `std`, has no use for it.
fn conversation(
    def: &NodeDef,
    declared: &Declaration,
    named: Option<&BTreeSet<ChannelName>>,
) -> Option<NodeConversation> {
    let is_named = |NodeConversation { channel, .. }: &NodeConversation| {
        named.is_none_or(|named| named.contains(channel))
    };
    declared.conversation(def.with.as_ref()).filter(is_named)
}

fn check(
    ctx: &CheckContext<'_>,
    path: &str,
    name: &NodeName,
    def: &NodeDef,
    problems: &mut Problems<'_>,
) {
    if name.as_str() == END {
        problems.add(path, format!("a node cannot be named `{END}`, the end of every path"));
    }
    for target in def.goto.iter().filter(|target| target.as_str() != END) {
        ctx.require_node(&format!("{path}.goto"), target, problems);
    }
    policies::check(ctx, path, name, def, problems);
}

/// Checks a node that is a function of a plugin. Returns `None` if the plugin does not export it.
fn plugin_body(
    ctx: &CheckContext<'_>,
    path: &str,
    name: &NodeName,
    def: &NodeDef,
    declarations: &mut Declarations<'_>,
    problems: &mut Problems<'_>,
) -> Option<(NodeKind, Arc<Declaration>)> {
    let plugins = declarations.plugins;
    if def.state.is_some() {
        let message = "only a subgraph node can have `state`";
        problems.add_with_hint(format!("{path}.state"), message, "add `graph = \"...\"`");
    }
    let Some(plugin) = def.plugin.clone().or_else(|| plugins.default_plugin()) else {
        let message = "the node names no plugin, and the app has no default plugin";
        problems.add_with_hint(path, message, "add `plugin = \"...\"`");
        return None;
    };
    let export = def.node.clone().unwrap_or_else(|| name.to_string());
    if !plugins.has_plugin(&plugin) {
        unknown_plugin(path, &plugin, plugins, problems);
        return None;
    }
    let Some(declared) = declarations.node(&plugin, &export) else {
        unknown_export(path, &plugin, &export, plugins, problems);
        return None;
    };
    if def.with.is_some() && !declared.takes_config() && ctx.age == Age::New {
        problems.add_with_hint(
            format!("{path}.with"),
            format!("node `{export}` of plugin `{plugin}` takes no configuration"),
            "remove `with` and `with_files`, or let the plugin publish the schema of the \
             configuration, in Rust with `#[node(config = Config)]`",
        );
    }
    schemas::check_config(path, def.with.as_ref(), &declared, problems);
    Some((NodeKind::Plugin { plugin, export }, declared))
}

/// Reports a node that its plugin does not export.
fn unknown_export(
    path: &str,
    plugin: &PluginName,
    export: &str,
    plugins: &dyn PluginCatalog,
    problems: &mut Problems<'_>,
) {
    if problems.is_full() {
        return;
    }
    let known = plugins.nodes(plugin);
    let what = format!("nodes of plugin `{plugin}`");
    let hint = suggest::hint(export, &what, known.iter().map(String::as_str));
    problems.add_with_hint(path, format!("plugin `{plugin}` has no node `{export}`"), hint);
}

/// Checks a node that is a graph of the document. Returns `None` if the document has no such graph.
fn subgraph_body(
    ctx: &CheckContext<'_>,
    path: &str,
    def: &NodeDef,
    checked: &CheckedGraphs<'_>,
    known: &mut SubgraphDeclarations,
    problems: &mut Problems<'_>,
) -> Option<(NodeKind, Arc<Declaration>)> {
    let graph = def.graph.as_ref()?;
    if !ctx.graphs.contains(graph) {
        let known = ctx.graphs.iter().map(|name| name.as_str());
        problems.add_with_hint(
            format!("{path}.graph"),
            format!("there is no graph `{graph}`"),
            suggest::hint(graph.as_str(), "graphs of this file", known),
        );
        return None;
    }
    let declared = subgraphs::check_subgraph_node(ctx, path, def, graph, checked, known, problems)?;
    let body = NodeKind::Graph { graph: graph.clone(), state: def.state.unwrap_or_default() };
    Some((body, declared))
}
