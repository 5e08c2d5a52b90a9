//! Calls of the graph and data services, which are MCP servers.

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use wattle_plugin::message::Part;
use wattle_plugin::prelude::{Failure, ToolOutput, Value, json, tools};

use crate::plan::Mode;

/// Code of the failure of a service that cannot be used.
pub(crate) const MCP: &str = "mcp";

/// Finds data attributes by words.
pub(crate) const LIST_DATA_ATTRIBUTES: &str = "graph.list_data_attributes";
/// Finds the ontologies that have data attributes.
pub(crate) const RELATED_ONTOLOGIES: &str = "graph.get_data_attribute_related_ontologies";
/// Finds ontologies by words.
pub(crate) const LIST_ONTOLOGIES: &str = "graph.list_ontologies";
/// Everything about ontologies.
pub(crate) const ONTOLOGY_DETAILS: &str = "graph.get_ontology_details";
/// Everything about capabilities.
pub(crate) const CAPABILITY_DETAILS: &str = "graph.get_capability_details";
/// Everything about object properties.
pub(crate) const OBJECT_PROPERTY_DETAILS: &str = "graph.get_object_property_details";

/// Makes one call and returns the items of its answer.
pub(crate) fn items<T: DeserializeOwned>(tool: &str, arguments: Value) -> Result<Vec<T>, Failure> {
    read(tool, &call(tool, arguments)?)
}

/// Makes calls of one tool at once; the items of each answer in the order of the calls.
pub(crate) fn items_of_all<T: DeserializeOwned>(
    tool: &str,
    arguments: Vec<Value>,
) -> Result<Vec<Vec<T>>, Failure> {
    let calls = arguments.into_iter().map(|arguments| tools::Call::new(tool, arguments)).collect();
    let answers = tools::call_all(calls).into_iter();
    answers.map(|answer| read(tool, &document(tool, answer)?)).collect()
}

/// Asks the data service.
pub(crate) fn data(mode: Mode, arguments: Value) -> Result<Value, Failure> {
    call(mode.tool(), arguments)
}

fn call(tool: &str, arguments: Value) -> Result<Value, Failure> {
    document(tool, tools::Call::new(tool, arguments).call())
}

/// The document of an answer: its data, or its text read as JSON for servers that send text only.
fn document(tool: &str, answer: Result<ToolOutput, Failure>) -> Result<Value, Failure> {
    let output = answer.map_err(|failure| failed(tool, &failure.message, &failure.code))?;
    let text = output.text_content();
    if output.is_error {
        return Err(failed(tool, &text, "tool-error"));
    }
    match output.structured {
        Some(document) => Ok(document),
        None => parsed(&text, &output.content)
            .map_err(|error| failed(tool, &format!("its answer is no JSON: {error}"), "invalid")),
    }
}

/// The document that a text is, or the parts of it without the line breaks between them: a server that cuts a document
/// into parts may cut it within a string.
fn parsed(text: &str, parts: &[Part]) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        serde_json::from_str(&texts.collect::<String>()).map_err(|_| error)
    })
}

/// The list of an answer, bare or under `items`.
fn read<T: DeserializeOwned>(tool: &str, document: &Value) -> Result<Vec<T>, Failure> {
    let list = document.get("items").unwrap_or(document);
    Vec::<T>::deserialize(list)
        .map_err(|error| failed(tool, &format!("its answer has another form: {error}"), "invalid"))
}

/// Final for the node: whether a service is tried again is the operator's choice, at the service.
fn failed(tool: &str, reason: &str, cause: &str) -> Failure {
    let message = format!("mcp call failed ({tool}): {reason}");
    let details = json!({ "reason": message, "cause": cause });
    Failure::new(MCP, message).with_details(details)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, ToolOutput, Value, json};
    use wattle_plugin::testing::FakeHost;

    use super::{LIST_ONTOLOGIES, items};

    fn check(answer: Result<ToolOutput, Failure>) -> Result<Vec<Value>, String> {
        let host = FakeHost::new().tool(LIST_ONTOLOGIES, move |_| answer.clone());
        host.run(|| items(LIST_ONTOLOGIES, json!({}))).map_err(|failure| failure.message)
    }

    #[test]
    fn answers_are_data_or_text() {
        assert_eq!(check(ToolOutput::json(&json!({"items": [1]}))), Ok(vec![json!(1)]));
        assert_eq!(check(Ok(ToolOutput::text("[1, 2]"))).map(|items| items.len()), Ok(2));
        let parts = ToolOutput::text("[1,").with_part("2]");
        assert_eq!(check(Ok(parts)), Ok(vec![json!(1), json!(2)]));
        let parts = ToolOutput::text("[\"a").with_part("b\"]");
        assert_eq!(check(Ok(parts)), Ok(vec![json!("ab")]), "cut within a string");
    }

    #[test]
    fn failures_name_the_tool() {
        let name = "mcp call failed (graph.list_ontologies): ";
        let error = check(Err(Failure::timeout("too slow"))).unwrap_err();
        assert_eq!(error, format!("{name}too slow"));
        let error = check(Ok(ToolOutput::error("no such index"))).unwrap_err();
        assert_eq!(error, format!("{name}no such index"));
        let parts = ToolOutput::error("no such index").with_part("see the list");
        assert_eq!(check(Ok(parts)).unwrap_err(), format!("{name}no such index\nsee the list"));
        for text in ["<html>", "{\"total\": 1}"] {
            let error = check(Ok(ToolOutput::text(text))).unwrap_err();
            assert!(error.starts_with(&format!("{name}its answer ")), "{error}");
        }
    }
}
