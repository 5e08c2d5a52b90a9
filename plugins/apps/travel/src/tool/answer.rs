//! What every tool answers: its output for programs, a shorter view for the model, and a note in
//! the state that later turns and sessions go on from.

use serde::Serialize;
use serde_json::{Map, Value};
use wattle_plugin::Failure;
use wattle_plugin::prelude::{Part, ToolOutput};

use crate::channel::{State, TOOL_OUTPUTS};
use crate::tool::view::{model_view, without_page};

/// The answer of a tool, which may write more channels.
pub(crate) fn answer(tool: &str, output: &impl Serialize) -> Result<ToolOutput, Failure> {
    answer_and_forget(tool, output, &[], &State::default())
}

/// The same for a tool after which the outputs of `later` ones no longer hold: they are noted as
/// `null`, which is as if these had not been called.
pub(crate) fn answer_and_forget(
    tool: &str,
    output: &impl Serialize,
    later: &[&str],
    state: &State,
) -> Result<ToolOutput, Failure> {
    let output = serde_json::to_value(output)?;
    let known = |name: &&&str| state.tool_outputs.get(**name).is_some_and(|it| !it.is_null());
    let mut notes: Map<String, Value> =
        later.iter().filter(known).map(|name| ((*name).to_owned(), Value::Null)).collect();
    notes.insert(tool.to_owned(), without_page(&output));
    let content = vec![Part::Text(model_view(tool, &output).to_string())];
    let answer = ToolOutput { content, structured: Some(output), ..ToolOutput::default() };
    Ok(answer.with_update(TOOL_OUTPUTS, notes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{answer, answer_and_forget};
    use crate::channel::State;

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
    }

    #[test]
    fn outputs_that_no_longer_hold_are_forgotten() {
        let outputs = json!({"b": {"x": 1}, "c": null, "d": {}});
        let state =
            State { tool_outputs: outputs.as_object().unwrap().clone(), ..State::default() };
        let answer = answer_and_forget("a", &json!({}), &["b", "c", "e"], &state).unwrap();
        assert_eq!(answer.updates[0].value, json!({"b": null, "a": {}}));
    }
}
