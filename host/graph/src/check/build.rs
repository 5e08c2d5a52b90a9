//! Puts a checked graph together out of a definition.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::channel::{Channel, Reducer};
use crate::check::facts::{Facts, NodeFacts};
use crate::check::problem::Problems;
use crate::check::shape::Draft;
use crate::check::{reach, routes, schemas};
use crate::definition::{GraphDef, NodeDef, Span};
use crate::graph::{Graph, Node, Retry};
use crate::id::{ChannelName, Digest, END, GraphName, NodeName};

/// A graph under construction: the definition with what is needed to check it.
pub(super) struct Site<'d> {
    pub(super) path: String,
    pub(super) def: &'d GraphDef,
    pub(super) draft: &'d Draft,
    /// What plugins say of the nodes, where they say anything.
    pub(super) facts: BTreeMap<NodeName, NodeFacts>,
}

impl Site<'_> {
    /// Whether there is a node of that name, readable or not.
    pub(super) fn has_node(&self, name: &str) -> bool {
        self.def.nodes.contains_key(name) || self.draft.unread.contains(name)
    }

    /// Whether there is a channel of that name, readable or not.
    pub(super) fn has_channel(&self, name: &str) -> bool {
        self.def.channels.contains_key(name) || self.draft.unread.contains(name)
    }

    /// Reports a name that no node has.
    pub(super) fn need_node(&self, path: &str, name: &NodeName, problems: &mut Problems<'_>) {
        if !self.has_node(name.as_str()) {
            let known = names(self.def.nodes.keys());
            let message = format!("there is no node `{name}`");
            problems.add_with_hint(path, message, format!("nodes of this graph: {known}"));
        }
    }

    /// What helps if a channel is missing.
    pub(super) fn channel_hint(&self) -> String {
        format!("channels of this graph: {}", names(self.def.channels.keys()))
    }
}

/// Names for a hint: at most ten.
fn names<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 10;
    let total = names.len();
    let shown: Vec<String> =
        names.take(SHOWN).map(|name| format!("`{}`", name.to_string())).collect();
    match (total, total > SHOWN) {
        (0, _) => "none".to_owned(),
        (_, false) => shown.join(", "),
        (_, true) => format!("{} and {} more", shown.join(", "), total - SHOWN),
    }
}

/// Checks a graph and puts it together. `None` if it cannot be built at all; if there were
/// problems, the result is not to be used.
pub(super) fn graph(
    name: &GraphName,
    draft: &Draft,
    facts: &dyn Facts,
    problems: &mut Problems<'_>,
) -> Option<Graph> {
    let path = format!("graphs.{name}");
    let mut site = Site { path, def: &draft.def, draft, facts: BTreeMap::new() };
    let channels = channels(&site, facts, problems);
    let nodes = nodes(&mut site, facts, problems);
    limits(&site, problems);
    let entry = routes::entry(&site, problems);
    let edges = routes::edges(&site, problems);
    let branches = routes::branches(&site, problems);
    routes::interrupts(&site, problems);
    reach::check(&site, problems);
    schemas::check(&site, problems);
    Some(Graph {
        name: name.clone(),
        digest: digest(name, &draft.def)?,
        definition: draft.def.clone(),
        channels,
        nodes,
        entry,
        edges,
        branches,
    })
}

fn channels(
    site: &Site<'_>,
    facts: &dyn Facts,
    problems: &mut Problems<'_>,
) -> BTreeMap<ChannelName, Channel> {
    let mut channels = BTreeMap::new();
    for (name, def) in &site.def.channels {
        let path = format!("{}.channels.{name}", site.path);
        let channel = match Channel::new(name.clone(), def) {
            Ok(channel) => channel,
            Err(error) => {
                problems.add(format!("{path}.schema"), format!("bad JSON schema: {error}"));
                continue;
            }
        };
        schemas::check_channel(&path, def, &channel, problems);
        if let Reducer::Plugin { plugin, reducer } = &channel.reducer {
            let path = format!("{path}.reducer");
            if !facts.has_plugin(plugin) {
                problems.add(path, format!("there is no plugin `{plugin}`"));
            } else if !facts.has_reducer(plugin, reducer) {
                problems.add(path, format!("plugin `{plugin}` has no reducer `{reducer}`"));
            }
        }
        channels.insert(name.clone(), channel);
    }
    channels
}

fn nodes(
    site: &mut Site<'_>,
    facts: &dyn Facts,
    problems: &mut Problems<'_>,
) -> BTreeMap<NodeName, Node> {
    let mut nodes = BTreeMap::new();
    for (name, def) in &site.def.nodes {
        let path = format!("{}.nodes.{name}", site.path);
        check_node(site, &path, name, def, problems);
        let Some(plugin) = def.plugin.clone().or_else(|| facts.default_plugin()) else {
            let message = "it is not clear which plugin has this node";
            problems.add_with_hint(path, message, "add `plugin = \"...\"`");
            continue;
        };
        let export = def.node.clone().unwrap_or_else(|| name.to_string());
        if !facts.has_plugin(&plugin) {
            problems.add(path, format!("there is no plugin `{plugin}`"));
            continue;
        }
        let Some(said) = facts.node(&plugin, &export) else {
            problems.add(path, format!("plugin `{plugin}` has no node `{export}`"));
            continue;
        };
        schemas::check_config(&path, def.with.as_ref(), said.config_schema.as_ref(), problems);
        let node = Node {
            name: name.clone(),
            plugin,
            export,
            retry: def.retry.as_ref().map(Retry::from).unwrap_or_default(),
            timeout_ms: def.timeout.map(Span::as_ms),
            reads: schemas::reads(&said.input_schema),
            config: def.with.clone().unwrap_or_default(),
            doc: if def.doc.is_empty() { said.doc.clone() } else { def.doc.clone() },
        };
        nodes.insert(name.clone(), node);
        site.facts.insert(name.clone(), said);
    }
    nodes
}

fn check_node(
    site: &Site<'_>,
    path: &str,
    name: &NodeName,
    def: &NodeDef,
    problems: &mut Problems<'_>,
) {
    if name.as_str() == END {
        problems.add(path, format!("a node cannot be named `{END}`, the end of every path"));
    }
    if def.timeout.is_some_and(|timeout| timeout.as_ms() == 0) {
        problems.add(format!("{path}.timeout"), "must be longer than zero");
    }
    for target in def.goto.iter().filter(|target| target.as_str() != END) {
        site.need_node(&format!("{path}.goto"), target, problems);
    }
    let Some(retry) = &def.retry else { return };
    let path = format!("{path}.retry");
    if retry.attempts == Some(0) {
        problems.add_with_hint(&path, "`attempts` must be at least 1", "1 means no retry");
    }
    if retry.factor.is_some_and(|factor| !factor.is_finite() || factor < 1.0) {
        problems.add(&path, "`factor` must be a number of at least 1");
    }
    if retry.on.as_ref().is_some_and(std::collections::BTreeSet::is_empty) {
        problems.add_with_hint(path, "`on` names no failure code", "leave it out to retry on all");
    }
}

fn limits(site: &Site<'_>, problems: &mut Problems<'_>) {
    if site.def.recursion_limit == Some(0) {
        problems.add(format!("{}.recursion_limit", site.path), "must be at least 1");
    }
    if site.def.interrupt_ttl.is_some_and(|ttl| ttl.as_ms() == 0) {
        problems.add(format!("{}.interrupt_ttl", site.path), "must be longer than zero");
    }
}

/// Digests the definition with sorted keys, so that the order of an author does not matter.
fn digest(name: &GraphName, def: &GraphDef) -> Option<Digest> {
    let def = serde_json::to_value(def).ok()?;
    let text = canonical(&json!({ "name": name, "graph": def })).to_string();
    Some(Digest::of(text.as_bytes()))
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
