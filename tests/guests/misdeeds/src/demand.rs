//! Nodes that ask too much of the host's services: a model, a database, the graph itself.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, Value, llm, node, sql,
};

/// What to ask a model for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Shaped {
    /// The route of the model.
    pub(crate) route: String,
    /// A JSON Schema, or something else; the answer is plain text if it is absent.
    #[serde(default)]
    pub(crate) schema: Option<Value>,
}

/// What a model said.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Said {
    /// Its words, or the document that fits the schema.
    pub(crate) answer: Value,
}

/// Asks the model of `route` for an answer that fits `schema`.
#[node]
pub(crate) fn ask_model(_context: &Context, input: Shaped) -> Result<Said, Failure> {
    let request = llm::Request::route(input.route).user("say something");
    let Some(schema) = input.schema else {
        return Ok(Said { answer: request.complete()?.text().into() });
    };
    let completion = request.schema_value("shaped", schema).complete()?;
    Ok(Said { answer: completion.structured()? })
}

/// A statement for a database.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Statement {
    /// The database.
    pub(crate) database: String,
    /// The statement.
    pub(crate) statement: String,
}

/// What a database answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    /// Its rows.
    pub(crate) rows: Vec<Value>,
}

/// Sends `statement` to `database`.
#[node]
pub(crate) fn run_sql(_context: &Context, input: Statement) -> Result<Answered, Failure> {
    let rows = sql::database(input.database).query(&input.statement, Vec::new())?;
    Ok(Answered { rows: rows.to_json() })
}

/// Where to go, and how often to say so.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Jumps {
    /// Gotos of each task.
    pub(crate) jumps: u32,
}

/// Goes to itself, and says so `jumps` times.
#[node]
pub(crate) fn jump(_context: &Context, input: Jumps) -> Result<Outcome<()>, Failure> {
    Ok((0..input.jumps).fold(Outcome::nothing(), |outcome, _| outcome.goto("jump")))
}

/// A failure, word for word.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Words {
    /// Its code.
    pub(crate) code: String,
    /// Its message.
    pub(crate) message: String,
}

/// Fails with these words.
#[node]
pub(crate) fn fail_as(_context: &Context, input: Words) -> Result<(), Failure> {
    Err(Failure::new(input.code, input.message))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, json, llm, sql};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{ask_model, fail_as, jump, run_sql};

    #[test]
    fn a_model_and_a_database_are_asked_as_told() {
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
    fn gotos_and_words_are_as_told() {
        let input = json!({ "jumps": 3 });
        let decision = testing::run_node::<jump>(&Context::default(), &input).unwrap();
        assert_eq!(decision.goto.len(), 3);
        let input = json!({ "code": "a", "message": "b" });
        let failure = testing::run_node::<fail_as>(&Context::default(), &input).unwrap_err();
        assert_eq!((&*failure.code, &*failure.message), ("a", "b"));
    }
}
