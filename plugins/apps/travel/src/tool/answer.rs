//! What every tool answers: its output for programs, a shorter view for the model, and a note in
//! the state that later turns and sessions go on from.

use serde::Serialize;
use serde_json::{Map, Value};
use wattle_plugin::Failure;
use wattle_plugin::prelude::{Part, ToolOutput};

use crate::channel::TOOL_OUTPUTS;
use crate::tool::view::{model_view, without_page};

/// The answer of a tool, which may write more channels.
pub(crate) fn answer(tool: &str, output: &impl Serialize) -> Result<ToolOutput, Failure> {
    answer_and_forget(tool, output, &[])
}

/// The same for a tool after which the outputs of `later` ones no longer hold: they are noted as
/// `null`, which is as if these had not been called. All of them are, known or not: a call of the
/// same turn may have made one, of which this one does not see the note.
pub(crate) fn answer_and_forget(
    tool: &str,
    output: &impl Serialize,
    later: &[&str],
) -> Result<ToolOutput, Failure> {
    let output = serde_json::to_value(output)?;
    let mut notes: Map<String, Value> =
        later.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    notes.insert(tool.to_owned(), without_page(&output));
    let content = vec![Part::Text(model_view(tool, &output).to_string())];
    let answer = ToolOutput { content, structured: Some(output), ..ToolOutput::default() };
    Ok(answer.with_update(TOOL_OUTPUTS, notes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{answer, answer_and_forget};

    #[test]
    fn an_output_goes_to_programs_the_model_and_the_state() {
        let output = json!({"html": "<p>", "title": "x"});
        let answer = answer("generate_handbook_html", &output).unwrap();
        assert_eq!(answer.structured, Some(output));
        assert_eq!(answer.text_content(), r#"{"title":"x"}"#);
        assert_eq!(answer.updates.len(), 1);
        let noted = json!({"generate_handbook_html": {"title": "x"}});
        assert_eq!(
            (&*answer.updates[0].channel, &answer.updates[0].value),
            ("tool_outputs", &noted)
        );
        assert!(!answer.updates[0].overwrite, "the notes of other tools stay");
    }

    #[test]
    fn outputs_that_no_longer_hold_are_forgotten() {
        let answer = answer_and_forget("a", &json!({}), &["b", "c"]).unwrap();
        assert_eq!(answer.updates[0].value, json!({"b": null, "c": null, "a": {}}));
    }
}
