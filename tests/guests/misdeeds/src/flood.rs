//! Nodes that make the host work or keep things: questions with schemas of their choice, tasks that
//! make tasks, blobs.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, Value, blob, interrupt, json,
    node,
};

/// What an answer must look like.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Shape {
    /// A JSON Schema, or something else.
    pub(crate) schema: Value,
}

/// What was answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Told {
    /// The answer.
    pub(crate) answer: Value,
}

/// Asks a question whose answer must fit `schema`.
#[node]
pub(crate) fn ask_shaped(_context: &Context, input: Shape) -> Result<Told, Failure> {
    let mut question = interrupt::Question::new(json!({ "question": "anything" }));
    question.response_schema = Some(input.schema);
    Ok(Told { answer: question.ask()? })
}

/// How many tasks to ask for.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// Sends of each task.
    pub(crate) sends: u32,
}

/// Writes nothing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Nothing {}

/// Sends itself to itself `sends` times, in each task again.
#[node]
pub(crate) fn multiply(_context: &Context, input: Tasks) -> Result<Outcome<Nothing>, Failure> {
    let mut outcome = Outcome::new(Nothing {});
    for _ in 0..input.sends {
        outcome = outcome.send("multiply", json!({ "sends": input.sends }));
    }
    Ok(outcome)
}

/// How much to keep.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Hoard {
    /// Blobs.
    pub(crate) blobs: u32,
    /// Bytes of each.
    pub(crate) bytes: u32,
}

/// What was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Kept {
    /// The last reference.
    pub(crate) kept: String,
}

/// Puts `blobs` different blobs of `bytes` bytes each.
#[node]
pub(crate) fn hoard(_context: &Context, input: Hoard) -> Result<Kept, Failure> {
    let mut bytes = vec![0_u8; input.bytes as usize];
    let mut kept = String::new();
    for number in 0..input.blobs {
        let head = bytes.len().min(4);
        bytes[..head].copy_from_slice(&number.to_le_bytes()[..head]);
        blob::put(&bytes, "application/octet-stream")?.as_str().clone_into(&mut kept);
    }
    Ok(Kept { kept })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json};
    use wattle_plugin::testing;

    use super::multiply;

    #[test]
    fn tasks_ask_for_as_many_as_told() {
        let input = json!({ "sends": 3 });
        let decision = testing::run_node::<multiply>(&Context::default(), &input).unwrap();
        assert_eq!(decision.sends.len(), 3);
    }
}
