//! The plugin of the app.

use wattle_plugin::prelude::*;

#[derive(Serialize, JsonSchema)]
struct Update {
    greeting: String,
}

/// Greets a person.
#[node]
fn greet(name: String) -> Result<Update, Failure> {
    Ok(Update { greeting: format!("Hello, {name}!") })
}

wattle_plugin::export! { nodes: [greet] }

#[cfg(test)]
mod tests;
