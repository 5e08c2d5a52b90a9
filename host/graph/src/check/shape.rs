//! Parses the definition in a document field by field, so that an invalid field does not hide
//! problems of the next.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::check::problem::Problems;
use crate::check::source::Source;
use crate::definition::{BranchDef, CaseDef, GraphDef};
use crate::id::{GraphName, IdError};

/// All graphs of a document, without their invalid parts.
pub(super) struct Drafts {
    pub(super) graphs: BTreeMap<GraphName, Draft>,
}

/// A graph without its invalid parts.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) def: GraphDef,
    /// Names of invalid nodes and channels. References to them are not reported.
    pub(super) unread: BTreeSet<String>,
    /// True if the graph has an entry that is invalid.
    pub(super) entry_unread: bool,
    /// True if an edge or branch is invalid, and therefore missing.
    pub(super) ways_unread: bool,
}

/// Parses all graphs. Reports unknown fields, wrong types and invalid names.
pub(super) fn read(source: &Source, problems: &mut Problems<'_>) -> Drafts {
    let mut drafts = Drafts { graphs: BTreeMap::new() };
    let Some(fields) = object(&source.root, "", problems) else { return drafts };
    for name in fields.keys().filter(|name| name.as_str() != "graphs") {
        problems.add_with_hint(
            name.as_str(),
            format!("unknown field `{name}`"),
            "a graph document has the field `graphs` only",
        );
    }
    let graphs = fields.get("graphs").and_then(|graphs| object(graphs, "graphs", problems));
    for (name, value) in graphs.into_iter().flatten() {
        let path = format!("graphs.{name}");
        let draft = graph(value, &path, problems);
        match GraphName::new(name) {
            Ok(name) => {
                drafts.graphs.insert(name, draft);
            }
            Err(error) => problems.add(path, error.to_string()),
        }
    }
    if fields.get("graphs").is_none() {
        problems.add_with_hint("", "there is no graph", "add `[graphs.<name>]`");
    }
    drafts
}

fn graph(value: &Value, path: &str, problems: &mut Problems<'_>) -> Draft {
    let mut draft = Draft::default();
    let Some(fields) = object(value, path, problems) else { return draft };
    let mut plain = fields.clone();
    let parts = ["channels", "nodes", "edges", "branches"];
    let [channels, nodes, edges, branches] =
        parts.map(|name| plain.shift_remove(name).unwrap_or(Value::Null));
    let sound = sound_fields::<GraphDef>(&plain, path, problems);
    draft.entry_unread = plain.contains_key("entry") && !sound.contains_key("entry");
    draft.def = serde_json::from_value(Value::Object(sound)).unwrap_or_default();
    let unread = &mut draft.unread;
    draft.def.channels = named(&channels, &format!("{path}.channels"), unread, problems);
    draft.def.nodes = named(&nodes, &format!("{path}.nodes"), unread, problems);
    let (edges, some_lost) = items(&edges, &format!("{path}.edges"), problems, record);
    let (branches, more_lost) = items(&branches, &format!("{path}.branches"), problems, branch);
    (draft.def.edges, draft.def.branches) = (edges, branches);
    draft.ways_unread = some_lost || more_lost;
    draft
}

/// Parses a branch. A branch with an invalid case is invalid.
fn branch(value: &Value, path: &str, problems: &mut Problems<'_>) -> Option<BranchDef> {
    let mut fields = object(value, path, problems)?.clone();
    let cases = fields.shift_remove("cases").unwrap_or(Value::Null);
    let (cases, lost) = items(&cases, &format!("{path}.cases"), problems, record::<CaseDef>);
    let branch: BranchDef = record(&Value::Object(fields), path, problems)?;
    (!lost).then_some(BranchDef { cases, ..branch })
}

/// Parses a table of named records. Adds the names of invalid records to `unread`.
fn named<K, T>(
    value: &Value,
    path: &str,
    unread: &mut BTreeSet<String>,
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
        match (key, record(value, &path, problems)) {
            (Ok(key), Some(record)) => {
                all.insert(key, record);
            }
            _ => {
                unread.insert(name.clone());
            }
        }
    }
    all
}

/// Parses an array and calls `read` for each item. Returns the valid items, and true if any item is
/// invalid.
fn items<'p, T>(
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
fn record<T: DeserializeOwned + Default>(
    value: &Value,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<T> {
    let fields = object(value, path, problems)?;
    let sound = sound_fields::<T>(fields, path, problems);
    if sound.len() < fields.len() {
        return None;
    }
    serde_json::from_value(Value::Object(sound)).ok()
}

/// Returns the valid fields of a record. Each field is parsed by itself; invalid ones are reported.
fn sound_fields<T: DeserializeOwned>(
    fields: &Map<String, Value>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Map<String, Value> {
    let mut sound = Map::new();
    for (name, value) in fields {
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        match serde_json::from_value::<T>(alone) {
            Ok(_) => {
                sound.insert(name.clone(), value.clone());
            }
            Err(error) => problems.add(format!("{path}.{name}"), for_authors(&error)),
        }
    }
    sound
}

/// Returns the message of a serde error without names of Rust types.
fn for_authors(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.replace("expected u32", "expected a whole number from 0 to 4294967295");
    match message.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a table"),
        None => message,
    }
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
