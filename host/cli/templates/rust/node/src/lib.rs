//! The plugin of the app.

use wattle_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Input {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Update {
    greeting: String,
}

/// Greets a person.
#[node]
fn greet(_context: &Context, input: Input) -> Result<Update, Failure> {
    Ok(Update { greeting: format!("Hello, {}!", input.name) })
}

wattle_plugin::export! { nodes: [greet] }

#[cfg(test)]
mod tests;
