//! Nodes that make the host work or store data: interrupts with a schema of their choice, tasks
//! that create many tasks, blobs.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, Value, blob, interrupt, json,
    node,
};

/// Input of `ask_shaped`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Shape {
    /// A JSON Schema, or an invalid one.
    pub(crate) schema: Value,
}

/// Output of `ask_shaped`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Told {
    /// The answer to the interrupt.
    pub(crate) answer: Value,
}

/// Raises an interrupt whose answer must match `schema`.
#[node]
pub(crate) fn ask_shaped(_context: &Context, input: Shape) -> Result<Told, Failure> {
    let mut question = interrupt::Question::new(json!({ "question": "anything" }));
    question.response_schema = Some(input.schema);
    Ok(Told { answer: question.ask()? })
}

/// Input of `multiply`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// Number of sends of each task.
    pub(crate) sends: u32,
}

/// An empty output.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Nothing {}

/// Sends `sends` tasks to itself, each of which does the same.
#[node]
pub(crate) fn multiply(_context: &Context, input: Tasks) -> Result<Outcome<Nothing>, Failure> {
    let mut outcome = Outcome::new(Nothing {});
    for _ in 0..input.sends {
        outcome = outcome.send("multiply", json!({ "sends": input.sends }));
    }
    Ok(outcome)
}

/// Input of `spread`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Groups {
    /// The groups of tasks, in order.
    pub(crate) groups: Vec<Group>,
}

/// Tasks of one node with the same input.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Group {
    /// The node of the graph.
    pub(crate) node: String,
    /// The input of each task.
    pub(crate) input: Value,
    /// Number of tasks.
    pub(crate) tasks: u32,
}

/// Sends the tasks of all `groups`.
#[node]
pub(crate) fn spread(_context: &Context, plan: Groups) -> Result<Outcome<Nothing>, Failure> {
    let mut outcome = Outcome::new(Nothing {});
    for Group { node, input, tasks } in &plan.groups {
        for _ in 0..*tasks {
            outcome = outcome.send(node, input);
        }
    }
    Ok(outcome)
}

/// Input of `hoard`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Hoard {
    /// Number of blobs.
    pub(crate) blobs: u32,
    /// Size of each blob, in bytes.
    pub(crate) bytes: u32,
}

/// Output of `hoard`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Kept {
    /// The reference of the last blob.
    pub(crate) kept: String,
}

/// Stores `blobs` different blobs of `bytes` bytes each.
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

    use super::{multiply, spread};

    #[test]
    fn a_task_has_the_requested_number_of_sends() {
        let input = json!({ "sends": 3 });
        let decision = testing::run_node::<multiply>(&Context::default(), &input).unwrap();
        assert_eq!(decision.sends.len(), 3);
    }

    #[test]
    fn groups_are_sent_one_after_another() {
        let groups = json!([
            { "node": "a", "input": {}, "tasks": 2 },
            { "node": "b", "input": { "n": 7 }, "tasks": 1 },
        ]);
        let input = json!({ "groups": groups });
        let decision = testing::run_node::<spread>(&Context::default(), &input).unwrap();
        let nodes: Vec<&str> = decision.sends.iter().map(|send| send.node.as_str()).collect();
        assert_eq!(nodes, ["a", "a", "b"]);
        assert_eq!(decision.sends[2].input, json!({ "n": 7 }));
    }
}
