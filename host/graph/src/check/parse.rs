//! Parses the definition in a document field by field, so that an invalid field does not hide the
//! problems of other fields.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::check::problem::Problems;
use crate::check::source::SourceDocument;
use crate::definition::{BranchDef, CaseDef, GraphDef};
use crate::id::{GraphName, IdError};
use crate::{expectation, suggest};

/// All graphs of a document, without their invalid parts.
pub(super) struct ParsedDocument {
    pub(super) graphs: BTreeMap<GraphName, ParsedGraph>,
}

/// A graph without its invalid parts.
#[derive(Default)]
pub(super) struct ParsedGraph {
    pub(super) def: GraphDef,
    /// Names of invalid nodes. References to them are not reported.
    pub(super) invalid_nodes: BTreeSet<String>,
    /// Names of invalid channels. References to them are not reported.
    pub(super) invalid_channels: BTreeSet<String>,
    /// True if the entry of the graph is invalid.
    pub(super) entry_is_invalid: bool,
    /// True if an edge or branch is invalid. The graph then lacks this edge or branch.
    pub(super) edges_are_incomplete: bool,
}

impl ParsedGraph {
    /// Returns true if a node or a channel is invalid.
    pub(super) fn has_invalid_names(&self) -> bool {
        !self.invalid_nodes.is_empty() || !self.invalid_channels.is_empty()
    }
}

/// Parses all graphs. Reports unknown fields, wrong types and invalid names.
pub(super) fn read(source: &SourceDocument, problems: &mut Problems<'_>) -> ParsedDocument {
    let mut document = ParsedDocument { graphs: BTreeMap::new() };
    let Some(fields) = object(&source.root, "", problems) else { return document };
    for name in fields.keys().filter(|name| name.as_str() != "graphs") {
        problems.add_with_hint(
            name.as_str(),
            format!("unknown field `{name}`"),
            "`graphs` is the only field of a graph document",
        );
    }
    let graphs = fields.get("graphs").and_then(|graphs| object(graphs, "graphs", problems));
    for (name, value) in graphs.into_iter().flatten() {
        let path = format!("graphs.{name}");
        let parsed = graph(value, &path, problems);
        match GraphName::new(name) {
            Ok(name) => {
                document.graphs.insert(name, parsed);
            }
            Err(error) => problems.add(path, error.to_string()),
        }
    }
    if fields.get("graphs").is_none() {
        problems.add_with_hint("", "there is no graph", "add `[graphs.<name>]`");
    }
    document
}

fn graph(value: &Value, path: &str, problems: &mut Problems<'_>) -> ParsedGraph {
    let mut parsed = ParsedGraph::default();
    let Some(fields) = object(value, path, problems) else { return parsed };
    let mut plain = fields.clone();
    let parts = ["channels", "nodes", "edges", "branches"];
    let [channels, nodes, edges, branches] =
        parts.map(|name| plain.shift_remove(name).unwrap_or(Value::Null));
    let valid = valid_fields::<GraphDef>(&plain, path, problems);
    parsed.entry_is_invalid = plain.contains_key("entry") && !valid.contains_key("entry");
    parsed.def = serde_json::from_value(Value::Object(valid)).unwrap_or_default();
    let invalid = &mut parsed.invalid_channels;
    parsed.def.channels = parse_table(&channels, &format!("{path}.channels"), invalid, problems);
    let invalid = &mut parsed.invalid_nodes;
    parsed.def.nodes = parse_table(&nodes, &format!("{path}.nodes"), invalid, problems);
    let (edges, some_lost) = parse_list(&edges, &format!("{path}.edges"), problems, parse_record);
    let (branches, more_lost) =
        parse_list(&branches, &format!("{path}.branches"), problems, branch);
    (parsed.def.edges, parsed.def.branches) = (edges, branches);
    parsed.edges_are_incomplete = some_lost || more_lost;
    parsed
}

/// Parses a branch. A branch with an invalid case is invalid.
fn branch(value: &Value, path: &str, problems: &mut Problems<'_>) -> Option<BranchDef> {
    let mut fields = object(value, path, problems)?.clone();
    let cases = fields.shift_remove("cases").unwrap_or(Value::Null);
    let (cases, lost) =
        parse_list(&cases, &format!("{path}.cases"), problems, parse_record::<CaseDef>);
    let branch: BranchDef = parse_record(&Value::Object(fields), path, problems)?;
    (!lost).then_some(BranchDef { cases, ..branch })
}

/// Parses a table of named records. Adds the names of invalid records to `invalid_names`.
fn parse_table<K, T>(
    value: &Value,
    path: &str,
    invalid_names: &mut BTreeSet<String>,
    problems: &mut Problems<'_>,
) -> BTreeMap<K, T>
where
    K: std::str::FromStr<Err = IdError> + Ord,
    T: DeserializeOwned + Default,
{
    let mut all = BTreeMap::new();
    if value.is_null() {
        return all;
    }
    for (name, value) in object(value, path, problems).into_iter().flatten() {
        let path = format!("{path}.{name}");
        let key = name.parse::<K>().map_err(|error| problems.add(&path, error.to_string()));
        match (key, parse_record(value, &path, problems)) {
            (Ok(key), Some(record)) => {
                all.insert(key, record);
            }
            _ => {
                invalid_names.insert(name.clone());
            }
        }
    }
    all
}

/// Parses an array and calls `read` for each item. Returns the valid items, and true if any item is
/// invalid.
fn parse_list<'p, T>(
    value: &Value,
    path: &str,
    problems: &mut Problems<'p>,
    read: fn(&Value, &str, &mut Problems<'p>) -> Option<T>,
) -> (Vec<T>, bool) {
    match value {
        Value::Null => (Vec::new(), false),
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            let all: Vec<T> = numbered
                .filter_map(|(index, item)| read(item, &format!("{path}[{index}]"), problems))
                .collect();
            let lost = all.len() < items.len();
            (all, lost)
        }
        _ => {
            problems.add(path, "must be an array");
            (Vec::new(), true)
        }
    }
}

/// Parses a record whose fields all have defaults. Returns `None` if any field is invalid.
fn parse_record<T: DeserializeOwned + Default>(
    value: &Value,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<T> {
    let fields = object(value, path, problems)?;
    let valid = valid_fields::<T>(fields, path, problems);
    if valid.len() < fields.len() {
        return None;
    }
    serde_json::from_value(Value::Object(valid)).ok()
}

/// Returns the valid fields of a record. Each field is parsed separately, and invalid fields are
/// reported.
fn valid_fields<T: DeserializeOwned>(
    fields: &Map<String, Value>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Map<String, Value> {
    let mut valid = Map::new();
    for (name, value) in fields {
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        match serde_json::from_value::<T>(alone) {
            Ok(_) => {
                valid.insert(name.clone(), value.clone());
            }
            Err(error) => {
                let message = expectation::of_message(&error.to_string());
                let hint = suggest::of_message(&message);
                problems.report(format!("{path}.{name}"), message, hint);
            }
        }
    }
    valid
}

fn object<'v>(
    value: &'v Value,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<&'v Map<String, Value>> {
    let fields = value.as_object();
    if fields.is_none() {
        problems.add(path, "must be a table");
    }
    fields
}
