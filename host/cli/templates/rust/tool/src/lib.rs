//! A plugin with a tool.

use wattle_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The text.
    text: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Count {
    words: usize,
}

/// Counts the words of a text.
#[tool(read_only)]
fn count_words(_context: &ToolContext, args: Args) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&Count { words: args.text.split_whitespace().count() })
}

/// Calls the tool as an agent does.
#[node]
fn call(_context: &Context, args: Args) -> Result<Count, Failure> {
    let output = tools::Call::new("{{name}}/count_words", json!({ "text": args.text })).call()?;
    Ok(Count::deserialize(output.structured.unwrap_or_default())?)
}

wattle_plugin::export! { nodes: [call], tools: [count_words] }

#[cfg(test)]
mod tests;
