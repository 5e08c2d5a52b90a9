//! The plugin of the app.

use wattle_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Input {
    name: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Draft {
    greeting: String,
}

#[derive(Serialize, JsonSchema)]
struct Decision {
    approved: bool,
}

/// Greets a person.
#[node]
fn greet(_context: &Context, input: Input) -> Result<Draft, Failure> {
    Ok(Draft { greeting: format!("Hello, {}!", input.name) })
}

/// Asks a person whether the greeting may be sent.
#[node]
fn approve(_context: &Context, draft: Draft) -> Result<Decision, Failure> {
    // The run is interrupted until the answer arrives.
    let approved: bool = interrupt::ask_with_schema(json!({ "greeting": draft.greeting }))?;
    Ok(Decision { approved })
}

wattle_plugin::export! { nodes: [greet, approve] }

#[cfg(test)]
mod tests;
