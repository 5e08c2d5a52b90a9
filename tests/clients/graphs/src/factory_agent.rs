//! A graph that says for what it was loaded.

use wattle_plugin::prelude::{Context, Deserialize, Failure, JsonSchema, Serialize, Value, node};

/// Why a graph is loaded whose run context does not say.
const FOR_A_RUN: &str = "threads.create_run";

/// What to echo.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    #[serde(default)]
    text: String,
}

/// The echo, and what the run's context says.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Update {
    text: String,
    access_context: String,
    is_for_execution: bool,
}

/// Echoes a text. It runs in runs only, so it always says that it is there for one.
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
    fn the_context_of_the_run_is_said() {
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
