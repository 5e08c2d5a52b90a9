//! Calls of the graph and data services, which are MCP servers.

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Failure, ToolOutput, Value, json, tools};

use crate::plan::Mode;

/// Failure code of a failed call of a service.
pub(crate) const MCP: &str = "mcp";

/// Tool that searches for data attributes.
pub(crate) const LIST_DATA_ATTRIBUTES: &str = "graph.list_data_attributes";
/// Tool that returns the ontologies of data attributes.
pub(crate) const RELATED_ONTOLOGIES: &str = "graph.get_data_attribute_related_ontologies";
/// Tool that searches for ontologies.
pub(crate) const LIST_ONTOLOGIES: &str = "graph.list_ontologies";
/// Tool that returns the details of ontologies.
pub(crate) const ONTOLOGY_DETAILS: &str = "graph.get_ontology_details";
/// Tool that returns the details of capabilities.
pub(crate) const CAPABILITY_DETAILS: &str = "graph.get_capability_details";
/// Tool that returns the details of object properties.
pub(crate) const OBJECT_PROPERTY_DETAILS: &str = "graph.get_object_property_details";

/// Calls a tool and returns the items of its output.
pub(crate) fn items<T: DeserializeOwned>(tool: &str, arguments: Value) -> Result<Vec<T>, Failure> {
    read(tool, &call(tool, arguments)?)
}

/// Calls one tool several times concurrently. Returns the items of each output in the order of the
/// calls.
pub(crate) fn items_of_all<T: DeserializeOwned>(
    tool: &str,
    arguments: Vec<Value>,
) -> Result<Vec<Vec<T>>, Failure> {
    let calls = arguments.into_iter().map(|arguments| tools::Call::new(tool, arguments)).collect();
    let answers = tools::call_all(calls).into_iter();
    answers.map(|answer| read(tool, &document(tool, answer)?)).collect()
}

/// Queries the data service.
pub(crate) fn data(mode: Mode, arguments: Value) -> Result<Value, Failure> {
    call(mode.tool(), arguments)
}

fn call(tool: &str, arguments: Value) -> Result<Value, Failure> {
    document(tool, tools::Call::new(tool, arguments).call())
}

/// Returns the structured output of a call, or its text parsed as JSON for servers that send only
/// text.
fn document(tool: &str, answer: Result<ToolOutput, Failure>) -> Result<Value, Failure> {
    let output = answer.map_err(|failure| failed(tool, &failure.message, &failure.code))?;
    if output.is_error {
        return Err(failed(tool, &output.text_content(), "tool-error"));
    }
    output
        .document()
        .map_err(|error| failed(tool, &format!("its answer is no JSON: {error}"), "invalid"))
}

/// Returns the list in a document, which is the document itself or its field `items`.
fn read<T: DeserializeOwned>(tool: &str, document: &Value) -> Result<Vec<T>, Failure> {
    let list = document.get("items").unwrap_or(document);
    Vec::<T>::deserialize(list)
        .map_err(|error| failed(tool, &format!("its answer has another form: {error}"), "invalid"))
}

/// Returns a failure that is not retryable: the operator configures the retries of a service.
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
    fn outputs_are_structured_or_text() {
        assert_eq!(check(ToolOutput::json(&json!({"items": [1]}))), Ok(vec![json!(1)]));
        assert_eq!(check(Ok(ToolOutput::text("[1, 2]"))).map(|items| items.len()), Ok(2));
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
