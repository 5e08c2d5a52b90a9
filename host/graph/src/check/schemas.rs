//! Compares the schemas that plugins declare for nodes with the channels of the graph.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::channel::{Channel, Reducer};
use crate::check::context::CheckContext;
use crate::check::declaration::{Declaration, distinct};
use crate::check::problem::Problems;
use crate::definition::{BranchMode, BuiltInReducer, ChannelDef, ReducerDef};
use crate::event::Write;
use crate::graph::is_end;
use crate::id::{ChannelName, NodeName};
use crate::schema::StepBudget;

/// Maximum number of problems that are reported for one configuration.
const CONFIG_VIOLATIONS: usize = 100;

/// Maximum number of nodes that a problem about several nodes names.
const NAMED_NODES: usize = 10;

/// Returns the channels that the nodes of a graph declare they write.
pub(super) fn writes(ctx: &CheckContext<'_>) -> BTreeSet<ChannelName> {
    let declared = distinct(&ctx.declarations).into_iter();
    let names = declared.flat_map(|(declaration, _)| declaration.outputs().keys());
    names.filter_map(|name| ChannelName::new(name).ok()).collect()
}

/// Returns the types of two schemas if no value can fit both.
pub(super) fn incompatible_types(one: &Value, other: &Value) -> Option<(String, String)> {
    let (one, other) = (types(one)?, types(other)?);
    let fits = one.iter().any(|one| other.iter().any(|other| overlap(one, other)));
    (!fits).then(|| (one.join(" or "), other.join(" or ")))
}

/// Validates the configuration of a node against the schema of its plugin. A missing configuration
/// counts as an empty one, so that missing required fields are reported when the app is loaded.
pub(super) fn check_config(
    path: &str,
    config: Option<&Value>,
    declared: &Declaration,
    problems: &mut Problems<'_>,
) {
    let Some(schema) = declared.config() else { return };
    let path = format!("{path}.with");
    let empty = Value::Object(serde_json::Map::new());
    let found = match schema {
        Err(error) => vec![format!("the plugin's configuration schema is invalid: {error}")],
        Ok(schema) => match schema.violations(config.unwrap_or(&empty), CONFIG_VIOLATIONS) {
            Err(exceeded) => vec![format!("the plugin's configuration schema: {exceeded}")],
            Ok(violations) => violations,
        },
    };
    for problem in found {
        problems.add(path.clone(), problem);
    }
}

/// Checks the schemas of all nodes, and the writers of each channel within a superstep.
pub(super) fn check(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    for (declaration, nodes) in distinct(&ctx.declarations) {
        let mismatches = mismatches(ctx, declaration);
        for node in nodes {
            for mismatch in &mismatches {
                if problems.is_full() {
                    return;
                }
                mismatch.report(ctx, node, problems);
            }
        }
    }
    let waits = |name: &NodeName| ctx.def.nodes.get(name).is_some_and(|node| node.defer);
    for group in parallel_groups(ctx) {
        // Deferred nodes run in a separate superstep.
        let (late, now) = group.into_iter().partition(waits);
        check_concurrent_writes(ctx, &now, problems);
        check_concurrent_writes(ctx, &late, problems);
    }
}

/// A difference between what a node declares and the channels of its graph.
enum Mismatch<'d> {
    Reads(&'d str),
    Writes(&'d str),
    Type { channel: &'d str, writes: String, holds: String },
}

impl Mismatch<'_> {
    fn report(&self, ctx: &CheckContext<'_>, node: &NodeName, problems: &mut Problems<'_>) {
        let path = format!("{}.nodes.{node}", ctx.path);
        let (verb, name) = match self {
            Self::Reads(name) => ("reads", name),
            Self::Writes(name) => ("writes", name),
            Self::Type { channel, writes, holds } => {
                let message = format!(
                    "node `{node}` writes {writes} to channel `{channel}`, which holds {holds}"
                );
                problems.add(path, message);
                return;
            }
        };
        let message = format!("node `{node}` {verb} unknown channel `{name}`");
        problems.add_with_hint(path, message, ctx.channel_hint(name));
    }
}

fn mismatches<'d>(ctx: &CheckContext<'_>, declaration: &'d Declaration) -> Vec<Mismatch<'d>> {
    let names = declaration.inputs().keys().filter(|name| !ctx.has_channel(name));
    let mut found: Vec<Mismatch<'d>> = names.map(|name| Mismatch::Reads(name)).collect();
    for (name, schema) in declaration.outputs() {
        let Some(channel) = ctx.def.channels.get(name.as_str()) else {
            if !ctx.has_channel(name) {
                found.push(Mismatch::Writes(name));
            }
            continue;
        };
        if write_has_value_type(&channel.reducer)
            && !ctx.bad_schemas.contains(name.as_str())
            && let Some((writes, holds)) = incompatible_types(schema, &channel.schema)
        {
            found.push(Mismatch::Type { channel: name, writes, holds });
        }
    }
    found
}

/// Returns true if a write has the type of the whole channel value, and not the type of one of its
/// items or keys.
fn write_has_value_type(reducer: &ReducerDef) -> bool {
    !matches!(
        reducer,
        ReducerDef::Plugin(_)
            | ReducerDef::BuiltIn(BuiltInReducer::Append | BuiltInReducer::Messages)
    )
}

/// Checks the reducer of a channel against its schema, and its default against both. The defaults
/// of a graph share `budget`.
pub(super) fn check_channel(
    path: &str,
    def: &ChannelDef,
    channel: &Channel,
    budget: &StepBudget,
    problems: &mut Problems<'_>,
) {
    let needed: &[&str] = match &channel.reducer {
        Reducer::Append | Reducer::Messages => &["array"],
        Reducer::Merge => &["object"],
        Reducer::Sum | Reducer::Min | Reducer::Max => &["number", "integer"],
        _ => &[],
    };
    if let Some(holds) = types(&def.schema)
        && !needed.is_empty()
        && !holds.iter().any(|kind| needed.contains(&kind.as_str()))
    {
        let message = format!(
            "the reducer needs a value of type {}, but the schema says {}",
            needed[0],
            holds.join(" or ")
        );
        problems.add(format!("{path}.schema"), message);
    }
    let Some(default) = &def.default else { return };
    let path = format!("{path}.default");
    if let Err(error) = channel.validate_within(default, budget) {
        problems.add(&path, format!("the default does not fit the schema: {error}"));
    }
    let write = Write { channel: channel.name.clone(), value: default.clone(), overwrite: true };
    if !needed.is_empty() && !needed.contains(&json_type(&write.value)) {
        problems.add(&path, format!("the reducer needs a default of type {}", needed[0]));
    }
}

/// Returns groups of nodes that run in the same superstep: the entry, the targets of all edges of a
/// node, of a barrier, of a case, and of a branch that takes every matching case.
fn parallel_groups(ctx: &CheckContext<'_>) -> Vec<BTreeSet<NodeName>> {
    let mut by_source: BTreeMap<&[NodeName], BTreeSet<NodeName>> = BTreeMap::new();
    for edge in &ctx.def.edges {
        by_source.entry(&edge.from).or_default().extend(edge.to.iter().cloned());
    }
    let mut groups: Vec<BTreeSet<NodeName>> = by_source.into_values().collect();
    groups.push(ctx.def.entry.iter().cloned().collect());
    for branch in &ctx.def.branches {
        let cases = branch.cases.iter().map(|case| case.to.iter().cloned().collect());
        match branch.mode {
            BranchMode::First => groups.extend(cases),
            BranchMode::All => {
                let matching = branch.cases.iter().filter(|case| case.when.is_some());
                groups.push(matching.flat_map(|case| case.to.iter().cloned()).collect());
            }
        }
    }
    groups
}

/// Reports a channel that accepts one write per superstep and that several nodes of a group write.
fn check_concurrent_writes(
    ctx: &CheckContext<'_>,
    group: &BTreeSet<NodeName>,
    problems: &mut Problems<'_>,
) {
    let nodes = group.iter().filter(|node| !is_end(node));
    let declared = distinct(nodes.filter_map(|node| Some((node, ctx.declarations.get(node)?))));
    let mut writers: BTreeMap<&str, Vec<&[&NodeName]>> = BTreeMap::new();
    for (declaration, nodes) in &declared {
        for name in declaration.outputs().keys().filter(|name| has_one_value(ctx, name)) {
            writers.entry(name).or_default().push(nodes);
        }
    }
    for (name, nodes) in writers {
        if problems.is_full() {
            return;
        }
        let count: usize = nodes.iter().map(|nodes| nodes.len()).sum();
        if count < 2 {
            continue;
        }
        let mut nodes: Vec<&NodeName> = nodes.concat();
        nodes.sort();
        let named = nodes.iter().take(NAMED_NODES).map(|node| format!("`{node}`"));
        let more = (count > NAMED_NODES).then(|| format!("{} more", count - NAMED_NODES));
        let listed: Vec<String> = named.chain(more).collect();
        problems.add_with_hint(
            format!("{}.channels.{name}", ctx.path),
            format!(
                "nodes {} run in the same superstep and all write channel `{name}`, which holds \
                 one value",
                listed.join(" and ")
            ),
            "give the channel a reducer such as `append`, `merge` or `any`",
        );
    }
}

/// Returns true if a channel accepts one write in a superstep.
fn has_one_value(ctx: &CheckContext<'_>, name: &str) -> bool {
    const SINGLE: [ReducerDef; 2] =
        [ReducerDef::BuiltIn(BuiltInReducer::Last), ReducerDef::BuiltIn(BuiltInReducer::Ephemeral)];
    ctx.def.channels.get(name).is_some_and(|channel| SINGLE.contains(&channel.reducer))
}

/// Returns the types of a schema; `None` if it names no type.
fn types(schema: &Value) -> Option<Vec<String>> {
    match schema.get("type")? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(many) => {
            Some(many.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => None,
    }
}

fn overlap(one: &str, other: &str) -> bool {
    let number = |kind: &str| kind == "number" || kind == "integer";
    one == other || (number(one) && number(other))
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
