//! Nodes that deal with other graphs or nodes: `delegate` runs a subgraph, `start_many` starts many,
//! `escalate` writes to its parent graph, and `confess` handles the error of another node.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, Value, json, node, runs,
};

use crate::output::Number;

/// Input of `delegate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Assignment {
    /// The graph to run.
    pub(crate) errand: Errand,
}

/// A subgraph to run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Errand {
    /// The name of the graph, which belongs to the same app.
    pub(crate) graph: String,
    /// The input of the graph: values of its channels.
    pub(crate) input: Value,
}

/// Output of `delegate`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// The outcome of the run, and its state.
    pub(crate) result: Value,
}

/// Runs the graph of `errand` as a subgraph and waits for its end.
#[node]
pub(crate) fn delegate(_context: &Context, input: Assignment) -> Result<Report, Failure> {
    let run = runs::Start::graph(input.errand.graph).input(input.errand.input).start()?;
    let ended = runs::wait(&run)?;
    let outcome = match &ended.outcome {
        runs::Outcome::Completed => "completed".to_owned(),
        runs::Outcome::Failed(failure) => failure.code.clone(),
        other => format!("{other:?}"),
    };
    Ok(Report { result: json!({ "outcome": outcome, "state": ended.state }) })
}

/// Input of `start_many`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Starts {
    /// The name of the graph, which belongs to the same app.
    pub(crate) graph: String,
    /// Number of subgraphs.
    pub(crate) count: u32,
    /// Number of bytes of the text in the input of each subgraph.
    pub(crate) bytes: usize,
}

/// Starts `count` subgraphs, whose inputs have a text of `bytes` bytes, and waits for none of them.
#[node]
pub(crate) fn start_many(_context: &Context, input: Starts) -> Result<(), Failure> {
    for _ in 0..input.count {
        let text = "x".repeat(input.bytes);
        runs::Start::graph(input.graph.as_str()).input(json!({ "text": text })).start()?;
    }
    Ok(())
}

/// Output of `escalate`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Ten times the input.
    pub(crate) number: i64,
}

/// Writes ten times `number` to the parent graph and goes to its node `counter`.
#[node]
pub(crate) fn escalate(_context: &Context, input: Number) -> Result<Outcome<Verdict>, Failure> {
    let number = input.number.unwrap_or_default() * 10;
    Ok(Outcome::new(Verdict { number }).goto("counter").for_parent())
}

/// Output of `confess`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Confession {
    /// Node, code and message of the failure; null if the node does not run as an error handler.
    pub(crate) error: Value,
}

/// Writes the failure that it handles.
#[node]
pub(crate) fn confess(context: &Context, _input: Value) -> Result<Confession, Failure> {
    let error = context
        .error()
        .map(|error| json!({ "node": error.node, "code": error.code, "message": error.message }));
    Ok(Confession { error: error.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Failure, NodeError, Value, json, runs};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{confess, delegate, escalate};

    #[test]
    fn delegate_writes_the_state_of_the_subgraph() -> Result<(), Failure> {
        let host = FakeHost::new().run_ends(|run| runs::EndedRun {
            run: run.clone(),
            outcome: runs::Outcome::Completed,
            state: json!({ "number": 2 }),
        });
        let input = json!({ "errand": { "graph": "counter", "input": { "number": 1 } } });
        let decision = host.run(|| testing::run_node::<delegate>(&Context::default(), &input))?;
        let result = json!({ "outcome": "completed", "state": { "number": 2 } });
        assert_eq!(decision.update("result"), Some(&result));
        assert_eq!(host.started()[0].graph, "counter");
        Ok(())
    }

    #[test]
    fn escalate_writes_to_the_parent_graph() -> Result<(), Failure> {
        let decision = testing::run_node::<escalate>(&Context::default(), &json!({ "number": 4 }))?;
        assert_eq!(
            (decision.update("number"), &decision.extra["parent"]),
            (Some(&json!(40)), &json!(true))
        );
        Ok(())
    }

    #[test]
    fn confess_names_the_failed_node() -> Result<(), Failure> {
        let error = NodeError { node: "work".to_owned(), ..NodeError::default() };
        let context = Context::default().with_error(error);
        let decision = testing::run_node::<confess>(&context, &json!({}))?;
        assert_eq!(decision.update("error").unwrap_or(&Value::Null)["node"], "work");
        let decision = testing::run_node::<confess>(&Context::default(), &json!({}))?;
        assert_eq!(decision.update("error"), Some(&Value::Null));
        Ok(())
    }
}
