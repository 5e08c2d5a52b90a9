//! Input and output of subgraphs.
//!
//! Both pass through the channels that parent graph and subgraph have in common. The output
//! consists of writes must not count twice: for `append` the output is the new items, for `sum` the
//! difference, for `messages` the new and changed messages. For any other channel that changed, the
//! output is the final value.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use wattle_graph::channel::Reducer;
use wattle_graph::checkpoint::{ChannelValue, Content, Values};
use wattle_graph::event::Write;
use wattle_graph::graph::Graph;

/// Returns the input of a subgraph: the input of its task without channels that only the parent
/// graph has. Unknown names stay, so that they are rejected.
pub(crate) fn subgraph_input(parent: &Graph, child: &Graph, given: Value) -> Value {
    let Value::Object(mut fields) = given else { return given };
    fields.retain(|name, _| {
        child.channels().contains_key(name.as_str())
            || !parent.channels().contains_key(name.as_str())
    });
    Value::Object(fields)
}

/// Returns the writes of a subgraph from its values at the start and at the end.
pub(crate) fn subgraph_writes(
    parent: &Graph,
    child: &Graph,
    began: &Values,
    ended: &Values,
) -> Vec<Write> {
    let common = parent.channels().iter().filter(|(name, _)| child.channels().contains_key(*name));
    common
        .filter_map(|(name, channel)| {
            let (before, after) = (began.get(name), ended.get(name)?);
            if before == Some(after) {
                return None;
            }
            let value = added_value(&channel.reducer, before, after);
            let value = value.unwrap_or_else(|| after.value().into_owned());
            Some(Write { channel: name.clone(), value, overwrite: false })
        })
        .collect()
}

/// Returns the part of a value that a subgraph added, in the form that the parent's reducer
/// expects; `None` if the part is the whole value.
fn added_value(
    reducer: &Reducer,
    before: Option<&ChannelValue>,
    after: &ChannelValue,
) -> Option<Value> {
    match (reducer, before?.content(), after.content()) {
        (Reducer::Append, Content::List(before), Content::List(after)) => {
            let new = after.tail(before.len()).filter(|_| after.starts_with(before))?;
            Some(Value::Array(new.into_iter().cloned().collect()))
        }
        (Reducer::Messages, Content::List(before), Content::List(after)) => {
            let before: BTreeMap<&str, &Value> =
                before.iter().filter_map(|message| Some((id_of(message)?, message))).collect();
            let is_new =
                |message: &&Value| id_of(message).is_none_or(|id| before.get(id) != Some(message));
            Some(Value::Array(after.iter().filter(is_new).cloned().collect()))
        }
        (
            Reducer::Sum,
            Content::Other(Value::Number(before)),
            Content::Other(Value::Number(after)),
        ) => difference(before, after).map(Value::Number),
        _ => None,
    }
}

fn id_of(message: &Value) -> Option<&str> {
    message.as_object().and_then(|fields: &Map<String, Value>| fields.get("id")?.as_str())
}

fn difference(before: &Number, after: &Number) -> Option<Number> {
    match (before.as_i128(), after.as_i128()) {
        (Some(before), Some(after)) => Number::from_i128(after - before),
        _ => Number::from_f64(after.as_f64()? - before.as_f64()?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::check::{AnyPlugin, check_toml};

    use super::*;

    fn graph(channels: &str) -> Graph {
        let text = format!(
            "[graphs.g]\nentry = 'n'\n[graphs.g.nodes.n]\nplugin = 'p'\n[graphs.g.channels]\n{channels}"
        );
        check_toml("graph.toml", &text, &AnyPlugin).unwrap().remove(0)
    }

    fn values(value: Value) -> Values {
        let Value::Object(fields) = value else { panic!("an object") };
        let named = |name: String| wattle_graph::id::ChannelName::new(name).unwrap();
        fields.into_iter().map(|(name, value)| (named(name), value.into())).collect()
    }

    #[test]
    fn subgraph_output_is_what_the_subgraph_added() {
        let channels = "a = { reducer = 'append' }\nm = { reducer = 'messages' }\n\
                        s = { reducer = 'sum' }\nl = {}\nsame = {}\n";
        let parent = graph(&format!("{channels}mine = {{}}\n"));
        let child = graph(&format!("{channels}own = {{}}\n"));
        let began = values(json!({
            "a": [1, 2], "m": [{ "id": "x", "t": 1 }, { "id": "y", "t": 1 }], "s": 5, "l": 1,
            "same": "as before", "own": 1,
        }));
        let ended = values(json!({
            "a": [1, 2, 2], "s": 7.5, "l": 2, "same": "as before", "own": 2,
            "m": [{ "id": "x", "t": 1 }, { "id": "y", "t": 2 }, { "id": "z", "t": 1 }],
        }));
        let written: BTreeMap<String, Value> = subgraph_writes(&parent, &child, &began, &ended)
            .into_iter()
            .map(|write| (write.channel.to_string(), write.value))
            .collect();
        let expected = json!({
            "a": [2], "m": [{ "id": "y", "t": 2 }, { "id": "z", "t": 1 }], "s": 2.5, "l": 2,
        });
        assert_eq!(json!(written), expected);
        // A list that does not extend its previous value is output as a whole.
        let other = values(json!({ "a": [9] }));
        assert_eq!(subgraph_writes(&parent, &child, &began, &other)[0].value, json!([9]));
    }

    #[test]
    fn subgraph_input_omits_channels_of_the_parent_only() {
        let (parent, child) = (graph("a = {}\nmine = {}"), graph("a = {}\nown = {}"));
        let given = json!({ "a": 1, "mine": 2, "own": 3, "typo": 4 });
        assert_eq!(subgraph_input(&parent, &child, given), json!({ "a": 1, "own": 3, "typo": 4 }));
    }
}
