//! A graph that writes the purpose for which it was loaded.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, Value, node};

/// The default of `access_context`, if the run context does not have it.
const FOR_A_RUN: &str = "threads.create_run";

/// Input of `echo`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    #[serde(default)]
    text: String,
}

/// Output of `echo`: the text, and values of the run context.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    text: String,
    access_context: String,
    is_for_execution: bool,
}

/// Echoes a text. Nodes execute only in runs, so `is_for_execution` is always true.
#[node]
pub(crate) fn echo(context: &Context, input: Input) -> Result<Update, Failure> {
    let access = context.context.get("access_context").and_then(Value::as_str);
    Ok(Update {
        text: format!("{} echoed", input.text),
        access_context: access.unwrap_or(FOR_A_RUN).to_owned(),
        is_for_execution: true,
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Value, json};
    use wattle_plugin::testing;

    use super::echo;

    #[test]
    fn the_context_of_the_run_is_written() {
        let other = json!({"access_context": "by hand"});
        for (context, access) in [(Value::Null, "threads.create_run"), (other, "by hand")] {
            let context = Context { context, ..Context::default() };
            let decision = testing::run_node::<echo>(&context, &json!({"text": "hi"})).unwrap();
            assert_eq!(decision.update("text"), Some(&json!("hi echoed")));
            assert_eq!(decision.update("access_context"), Some(&json!(access)));
            assert_eq!(decision.update("is_for_execution"), Some(&json!(true)));
        }
    }
}
