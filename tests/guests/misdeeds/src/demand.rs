//! Nodes that use the host's services without bounds: a model, a database, gotos, failures.

use wattle_plugin::prelude::{
    ChannelRef, Context, Deserialize, Failure, JsonSchema, Outcome, Reads, Serialize, Value, llm,
    node, sql,
};

/// The channel with the conversation of `recite`.
const MESSAGES: ChannelRef = ChannelRef::channel("messages");

/// The channel with the route of `recite`.
const ROUTE: ChannelRef = ChannelRef::channel("route");

/// Input of `ask_model`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Shaped {
    /// The route of the model.
    pub(crate) route: String,
    /// A JSON Schema, or an invalid one. Without a schema the completion is plain text.
    #[serde(default)]
    pub(crate) schema: Option<Value>,
}

/// Output of `ask_model`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Said {
    /// The text of the completion, or the document that matches the schema.
    pub(crate) answer: Value,
}

/// Calls the model of `route` and requests a document that matches `schema`.
#[node]
pub(crate) fn ask_model(_context: &Context, input: Shaped) -> Result<Said, Failure> {
    let request = llm::Request::route(input.route).user("say something");
    let Some(schema) = input.schema else {
        return Ok(Said { answer: request.complete()?.text().into() });
    };
    let completion = request.schema_value("shaped", schema).complete()?;
    Ok(Said { answer: completion.structured()? })
}

/// Input of `recite`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Recital {
    /// The route of the model.
    pub(crate) route: String,
}

/// Gives the whole conversation to the model of `route`.
#[node(reads = Reads::channels(&[ROUTE, MESSAGES]).with_conversation(MESSAGES))]
pub(crate) fn recite(context: &Context, input: Recital) -> Result<(), Failure> {
    llm::Request::route(input.route).history(&context.conversation()?).complete()?;
    Ok(())
}

/// Input of `run_sql`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Statement {
    /// The name of the database.
    pub(crate) database: String,
    /// The SQL statement.
    pub(crate) statement: String,
}

/// Output of `run_sql`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    /// The rows of the result.
    pub(crate) rows: Vec<Value>,
}

/// Sends `statement` to `database`.
#[node]
pub(crate) fn run_sql(_context: &Context, input: Statement) -> Result<Answered, Failure> {
    let rows = sql::database(input.database).query(&input.statement, Vec::new())?;
    Ok(Answered { rows: rows.to_json() })
}

/// Input of `jump`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Jumps {
    /// Number of gotos of each task.
    pub(crate) jumps: u32,
}

/// Goes to itself with `jumps` gotos.
#[node]
pub(crate) fn jump(_context: &Context, input: Jumps) -> Result<Outcome<()>, Failure> {
    Ok((0..input.jumps).fold(Outcome::nothing(), |outcome, _| outcome.goto("jump")))
}

/// Input of `fail_as`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Words {
    /// The code of the failure.
    pub(crate) code: String,
    /// The message of the failure.
    pub(crate) message: String,
}

/// Fails with the given code and message.
#[node]
pub(crate) fn fail_as(_context: &Context, input: Words) -> Result<(), Failure> {
    Err(Failure::new(input.code, input.message))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json, llm, sql};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{ask_model, fail_as, jump, recite, run_sql};

    #[test]
    fn nodes_call_the_model_and_the_database() {
        let host = FakeHost::new()
            .llm(|_| Ok(llm::Completion::of_text("well")))
            .sql(|_| Ok(sql::Rows::new(["n"], vec![vec![7_i64.into()]]).into()));
        host.run(|| {
            let input = json!({ "route": "chat" });
            let decision = testing::run_node::<ask_model>(&Context::default(), &input).unwrap();
            assert_eq!(decision.update("answer"), Some(&json!("well")));
            let input = json!({ "database": "d", "statement": "SELECT 7 AS n" });
            let decision = testing::run_node::<run_sql>(&Context::default(), &input).unwrap();
            assert_eq!(decision.update("rows"), Some(&json!([{ "n": 7 }])));
        });
    }

    #[test]
    fn the_whole_conversation_is_for_the_model() {
        let host = FakeHost::new().llm(|_| Ok(llm::Completion::of_text("well")));
        let input = json!({ "route": "chat", "messages": [{ "role": "user", "content": "hi" }] });
        host.run(|| testing::run_node::<recite>(&Context::default(), &input)).unwrap();
        let history = &host.llm_requests()[0].extra["history"];
        assert_eq!(history, &json!({ "channel": "messages", "at": 0, "from": 0 }));
    }

    #[test]
    fn gotos_and_failures_match_the_input() {
        let input = json!({ "jumps": 3 });
        let decision = testing::run_node::<jump>(&Context::default(), &input).unwrap();
        assert_eq!(decision.goto.len(), 3);
        let input = json!({ "code": "a", "message": "b" });
        let failure = testing::run_node::<fail_as>(&Context::default(), &input).unwrap_err();
        assert_eq!((&*failure.code, &*failure.message), ("a", "b"));
    }
}
