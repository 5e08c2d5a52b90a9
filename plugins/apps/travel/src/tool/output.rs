//! The output of every tool: whole for programs, shorter for the model, and recorded in the state
//! for later turns and sessions.

use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value};
use wattle_plugin::Failure;
use wattle_plugin::prelude::{Part, ToolOutput};

use crate::channel::TOOL_OUTPUTS;
use crate::session::stored_output::without_page;
use crate::tool::view::model_view;

/// Returns the output of a tool, to which the tool may add further writes.
pub(crate) fn tool_output(tool: &str, output: &impl Serialize) -> Result<ToolOutput, Failure> {
    tool_output_and_forget(tool, output, &[])
}

/// Returns the output of a tool that invalidates the outputs of `later` tools: they become `null`
/// in the state, as if these tools had not been called. This includes outputs that are not in the
/// visible state, because another call of the same turn may write one.
pub(crate) fn tool_output_and_forget(
    tool: &str,
    output: &impl Serialize,
    later: &[&str],
) -> Result<ToolOutput, Failure> {
    let output = serde_json::to_value(output)?;
    let mut notes: Map<String, Value> =
        later.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    notes.insert(tool.to_owned(), without_page(&output));
    let content = vec![Part::Text(model_view(tool, &output).to_string())];
    let tool_output = ToolOutput { content, structured: Some(output), ..ToolOutput::default() };
    Ok(tool_output.with_update(TOOL_OUTPUTS, notes))
}

/// Makes the fields of an output optional in its schema, because a client can store fewer.
pub(crate) fn optional_fields(schema: &mut Schema) {
    schema.remove("required");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{tool_output, tool_output_and_forget};

    #[test]
    fn output_goes_to_programs_the_model_and_the_state() {
        let output = json!({"html": "<p>", "title": "x"});
        let tool_output = tool_output("generate_handbook_html", &output).unwrap();
        assert_eq!(tool_output.structured, Some(output));
        assert_eq!(tool_output.text_content(), r#"{"title":"x"}"#);
        assert_eq!(tool_output.updates.len(), 1);
        let noted = json!({"generate_handbook_html": {"title": "x"}});
        assert_eq!(
            (&*tool_output.updates[0].channel, &tool_output.updates[0].value),
            ("tool_outputs", &noted)
        );
        assert!(!tool_output.updates[0].overwrite, "the notes of other tools stay");
    }

    #[test]
    fn invalidated_outputs_are_null() {
        let tool_output = tool_output_and_forget("a", &json!({}), &["b", "c"]).unwrap();
        assert_eq!(tool_output.updates[0].value, json!({"b": null, "c": null, "a": {}}));
    }
}
