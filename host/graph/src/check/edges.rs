//! Checks and compiles the entry, edges, branches and breakpoints of a graph.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::context::{Age, CheckContext};
use crate::check::problem::Problems;
use crate::definition::{
    BranchDef, BranchMode, BuiltInReducer, CaseDef, ChannelDef, EdgeDef, NodeSet, ReducerDef,
};
use crate::expr::Condition;
use crate::expr::kinds::schema::{MEMBER_PARTS, ValueType};
use crate::expr::kinds::{self, Kinds};
use crate::graph::{Branch, Case, Edge, is_end};
use crate::id::{ChannelName, END, NodeName};

/// Checks and returns the entry nodes.
pub(super) fn entry(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) -> BTreeSet<NodeName> {
    let path = format!("{}.entry", ctx.path);
    if ctx.def.entry.is_empty() && !ctx.parsed.entry_is_invalid {
        let hint = "add `entry = \"<node>\"`";
        problems.add_with_hint(&path, "the graph has no entry", hint);
    }
    for name in &ctx.def.entry {
        ctx.require_node(&path, name, problems);
    }
    let waits = |name: &NodeName| ctx.def.nodes.get(name).is_some_and(|node| node.defer);
    if !ctx.def.entry.is_empty() && ctx.def.entry.iter().all(waits) {
        let hint = "remove `defer` from one of them";
        problems.add_with_hint(&path, "all entry nodes are deferred", hint);
    }
    ctx.def.entry.iter().cloned().collect()
}

/// Reports breakpoints that name unknown nodes.
pub(super) fn check_breakpoints(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) {
    let before = ("interrupt_before", &ctx.def.interrupt_before);
    for (field, nodes) in [before, ("interrupt_after", &ctx.def.interrupt_after)] {
        let NodeSet::Named(names) = nodes else { continue };
        for name in names {
            ctx.require_node(&format!("{}.{field}", ctx.path), name, problems);
        }
    }
}

/// Checks and returns the edges.
pub(super) fn edges(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) -> Vec<Edge> {
    let numbered = ctx.def.edges.iter().enumerate();
    numbered
        .map(|(index, def)| {
            let path = format!("{}.edges[{index}]", ctx.path);
            check_sources(ctx, &path, "edge", &def.from, problems);
            check_targets(ctx, &path, "edge", &def.to, problems);
            edge(def)
        })
        .collect()
}

fn edge(def: &EdgeDef) -> Edge {
    let from: BTreeSet<NodeName> = def.from.iter().cloned().collect();
    let sources: Vec<&str> = from.iter().map(NodeName::as_str).collect();
    let targets: Vec<&str> = def.to.iter().map(NodeName::as_str).collect();
    let key = format!("{}->{}", sources.join("+"), targets.join("+"));
    Edge { from, to: def.to.clone(), key }
}

/// Checks and compiles the branches.
pub(super) fn branches(ctx: &CheckContext<'_>, problems: &mut Problems<'_>) -> Vec<Branch> {
    let mut types = ChannelTypes::new(ctx);
    let mut names = BTreeSet::new();
    let mut branches = Vec::with_capacity(ctx.def.branches.len());
    for (index, def) in ctx.def.branches.iter().enumerate() {
        let path = format!("{}.branches[{index}]", ctx.path);
        if def.name.is_empty() {
            problems.add_with_hint(&path, "the branch has no name", "add `name = \"...\"`");
        } else if !names.insert(def.name.as_str()) {
            problems.add(
                format!("{path}.name"),
                format!("another branch is named `{}` already", def.name),
            );
        }
        check_sources(ctx, &path, "branch", &def.from, problems);
        check_default_case(&path, def, problems);
        let cases = def.cases.iter().enumerate().map(|(index, case)| {
            self::case(ctx, &mut types, &format!("{path}.cases[{index}]"), case, problems)
        });
        branches.push(Branch {
            name: def.name.clone(),
            from: def.from.iter().cloned().collect(),
            mode: def.mode,
            cases: cases.collect(),
        });
    }
    branches
}

/// Reports a branch without cases, a branch of mode `first` without a default case at its end, and
/// a case without `when` that is not the last.
fn check_default_case(path: &str, def: &BranchDef, problems: &mut Problems<'_>) {
    let what = if def.name.is_empty() { "the branch" } else { &format!("branch `{}`", def.name) };
    let always = |case: &CaseDef| case.when.as_deref().is_none_or(|when| when.trim() == "true");
    if def.cases.is_empty() {
        problems.add(path, format!("{what} has no cases"));
    } else if def.mode == BranchMode::First && !def.cases.last().is_some_and(always) {
        problems.add_with_hint(
            path,
            format!("{what} has no default case"),
            "add a last case without `when`",
        );
    }
    let before_last = def.cases.len().saturating_sub(1);
    for (index, _) in
        def.cases.iter().enumerate().take(before_last).filter(|(_, case)| case.when.is_none())
    {
        let message = "only the last case can be without `when`";
        problems.add(format!("{path}.cases[{index}]"), message);
    }
}

fn case(
    ctx: &CheckContext<'_>,
    types: &mut ChannelTypes<'_>,
    path: &str,
    def: &CaseDef,
    problems: &mut Problems<'_>,
) -> Case {
    check_targets(ctx, path, "case", &def.to, problems);
    let when = def.when.as_ref().and_then(|text| {
        let path = format!("{path}.when");
        match Condition::parse(text) {
            Ok(condition) => {
                check_condition_channels(ctx, &path, &condition, problems);
                if ctx.age == Age::New {
                    check_condition_types(types, &path, &condition, problems);
                }
                Some(condition)
            }
            Err(error) => {
                problems.add(path, format!("condition `{text}` does not parse: {error}"));
                None
            }
        }
    });
    Case { when, to: def.to.clone() }
}

fn check_condition_channels(
    ctx: &CheckContext<'_>,
    path: &str,
    condition: &Condition,
    problems: &mut Problems<'_>,
) {
    for name in condition.channels().iter().filter(|name| !ctx.has_channel(name)) {
        let message = format!("condition `{}` names unknown channel `{name}`", condition.text());
        problems.add_with_hint(path, message, ctx.channel_hint(name));
    }
}

/// Types of the values of the channels, by name.
struct ChannelTypes<'d> {
    types: BTreeMap<&'d str, ValueType<'d>>,
    /// Number of subschemas that can still be read for members of the values.
    parts_left: u32,
}

impl<'d> ChannelTypes<'d> {
    fn new(ctx: &CheckContext<'d>) -> Self {
        let value_type = |(name, def): (&'d ChannelName, &'d ChannelDef)| {
            let is_bad = ctx.bad_schemas.contains(name);
            (name.as_str(), if is_bad { ValueType::ANY } else { type_of(def) })
        };
        let types = ctx.def.channels.iter().map(value_type).collect();
        Self { types, parts_left: MEMBER_PARTS }
    }
}

/// Returns the type of the values of a channel. A channel without a value reads as `null`.
fn type_of(def: &ChannelDef) -> ValueType<'_> {
    use BuiltInReducer as R;
    let schema = &def.schema;
    let values: ValueType<'_> = match &def.reducer {
        // The schema of the channel is not applied to the messages.
        ReducerDef::BuiltIn(R::Messages) => Kinds::LIST.into(),
        ReducerDef::BuiltIn(R::Append) => ValueType::of_schema(schema).with_kinds(Kinds::LIST),
        ReducerDef::BuiltIn(R::Merge) => ValueType::of_schema(schema).with_kinds(Kinds::MAP),
        ReducerDef::BuiltIn(R::Sum | R::Min | R::Max) => Kinds::NUMBER.into(),
        ReducerDef::BuiltIn(R::Last | R::Any | R::Ephemeral) | ReducerDef::Plugin(_) => {
            ValueType::of_schema(schema)
        }
    };
    values.or_null()
}

/// Reports operations of a condition that fail for all values that the channels can have.
fn check_condition_types(
    types: &mut ChannelTypes<'_>,
    path: &str,
    condition: &Condition,
    problems: &mut Problems<'_>,
) {
    let ChannelTypes { types, parts_left } = types;
    let of_channel = |name: &str| types.get(name).copied().unwrap_or(ValueType::ANY);
    let checked = kinds::check::check(condition.text(), &of_channel, parts_left);
    if checked.problems.is_empty() {
        return;
    }
    let channels = condition.channels();
    let channels = channels.iter().map(|name| (name, of_channel(name).kinds));
    let channels = channels.filter(|(_, kinds)| kinds.is_known());
    let channels = channels.map(|(name, kinds)| format!("channel `{name}` is {kinds}"));
    let members = checked.members.iter().map(|(member, kinds)| format!("`{member}` is {kinds}"));
    let known: Vec<String> = channels.chain(members).collect();
    let hint =
        (!known.is_empty()).then(|| format!("by schemas and reducers, {}", known.join(", ")));
    for problem in checked.problems {
        let message = format!("condition `{}`: {problem}", condition.text());
        problems.report(path, message, hint.clone());
    }
}

fn check_sources(
    ctx: &CheckContext<'_>,
    path: &str,
    what: &str,
    from: &[NodeName],
    problems: &mut Problems<'_>,
) {
    let path = format!("{path}.from");
    if from.is_empty() {
        let hint = "add `from = \"<node>\"`";
        problems.add_with_hint(&path, format!("the {what} has no source"), hint);
    }
    for name in from {
        if is_end(name) {
            problems.add(&path, format!("`{END}` cannot be a source"));
        } else {
            ctx.require_node(&path, name, problems);
        }
    }
}

fn check_targets(
    ctx: &CheckContext<'_>,
    path: &str,
    what: &str,
    to: &[NodeName],
    problems: &mut Problems<'_>,
) {
    let path = format!("{path}.to");
    if to.is_empty() {
        let hint = "add `to = \"<node>\"`, or `to = \"END\"`";
        problems.add_with_hint(&path, format!("the {what} has no target"), hint);
    }
    for name in to.iter().filter(|name| !is_end(name)) {
        ctx.require_node(&path, name, problems);
    }
}
