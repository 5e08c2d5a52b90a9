//! Nodes that know of other graphs than their own: one runs another, one speaks for the graph above,
//! one hears what failed beside it.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, Value, json, node, runs,
};

use crate::output::Number;

/// What to have done.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Assignment {
    /// A graph of the app and its input.
    pub(crate) errand: Errand,
}

/// One run of another graph.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Errand {
    /// The graph.
    pub(crate) graph: String,
    /// Its channel values.
    pub(crate) input: Value,
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// How the run ended, and its state.
    pub(crate) result: Value,
}

/// Runs the graph of `errand` and waits for it.
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

/// Tenfold.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    /// The number.
    pub(crate) number: i64,
}

/// Hands ten times `number` to the graph above and sends that to its node `counter`.
#[node]
pub(crate) fn escalate(_context: &Context, input: Number) -> Result<Outcome<Verdict>, Failure> {
    let number = input.number.unwrap_or_default() * 10;
    Ok(Outcome::new(Verdict { number }).goto("counter").for_parent())
}

/// What failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Confession {
    /// Node, code and message; null if nothing failed.
    pub(crate) error: Value,
}

/// Writes what failed in whose place it runs.
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
    fn an_errand_brings_the_state_of_the_other_graph() -> Result<(), Failure> {
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
    fn an_escalation_is_for_the_graph_above() -> Result<(), Failure> {
        let decision = testing::run_node::<escalate>(&Context::default(), &json!({ "number": 4 }))?;
        assert_eq!(
            (decision.update("number"), &decision.extra["parent"]),
            (Some(&json!(40)), &json!(true))
        );
        Ok(())
    }

    #[test]
    fn a_confession_names_what_failed() -> Result<(), Failure> {
        let error = NodeError { node: "work".to_owned(), ..NodeError::default() };
        let context = Context::default().with_error(error);
        let decision = testing::run_node::<confess>(&context, &json!({}))?;
        assert_eq!(decision.update("error").unwrap_or(&Value::Null)["node"], "work");
        let decision = testing::run_node::<confess>(&Context::default(), &json!({}))?;
        assert_eq!(decision.update("error"), Some(&Value::Null));
        Ok(())
    }
}
