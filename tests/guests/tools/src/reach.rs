//! Tools that access the outside: HTTP, databases, files, environment, settings.

use wattle_plugin::prelude::{
    Deserialize, Empty, Failure, JsonSchema, ToolContext, ToolOutput, Value, http, interrupt, json,
    settings, sql, tool,
};

/// Arguments of `net`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Address {
    /// The URL of the GET request.
    pub(crate) url: String,
}

/// Sends a GET request and returns the body.
#[tool(read_only)]
pub(crate) fn net(_context: &ToolContext, args: Address) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(http::Request::get(args.url).send()?.text()))
}

/// Arguments of `slow_then`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// The URL of the GET request, whose response is held back.
    pub(crate) url: String,
    /// The text to return.
    pub(crate) text: String,
}

/// Sends a GET request, then returns a text.
#[tool(read_only)]
pub(crate) fn slow_then(_context: &ToolContext, args: Wait) -> Result<ToolOutput, Failure> {
    http::Request::get(args.url).send()?;
    Ok(ToolOutput::text(args.text))
}

/// Arguments of `effect`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Target {
    /// The URL of the POST request.
    pub(crate) url: String,
    /// The idempotency key; none if it is absent.
    #[serde(default)]
    pub(crate) key: Option<String>,
}

/// Sends a POST request and returns the status.
#[tool]
pub(crate) fn effect(context: &ToolContext, args: Target) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({ "status": post(context, args.url, args.key)? }))
}

/// Arguments of `effect_then_ask`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TargetAndWish {
    /// The URL of the POST request.
    pub(crate) url: String,
    /// The question for a person.
    pub(crate) question: String,
}

/// Sends a POST request, then asks a person. The request must not be sent again after the answer.
#[tool]
pub(crate) fn effect_then_ask(
    context: &ToolContext,
    args: TargetAndWish,
) -> Result<ToolOutput, Failure> {
    let status = post(context, args.url, None)?;
    let answer = interrupt::ask(json!({ "question": args.question }))?;
    ToolOutput::json(&json!({ "status": status, "answer": answer }))
}

fn post(context: &ToolContext, url: String, key: Option<String>) -> Result<u16, Failure> {
    let request = http::Request::post(url).json(&json!({ "call_id": context.call_id }))?;
    let request = match key {
        Some(key) => request.idempotency_key(key),
        None => request,
    };
    Ok(request.send()?.status)
}

/// Arguments of `other_db`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Query {
    /// The name of the database.
    pub(crate) database: String,
    /// The SQL statement.
    pub(crate) statement: String,
}

/// Queries a database that is not granted.
#[tool(read_only)]
pub(crate) fn other_db(_context: &ToolContext, args: Query) -> Result<ToolOutput, Failure> {
    let rows = sql::database(&args.database).query(&args.statement, wattle_plugin::params![])?;
    let names: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    ToolOutput::json(&json!({ "columns": names, "rows": rows.values.len() }))
}

/// Arguments of `files`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Place {
    /// The path of the file.
    pub(crate) path: String,
}

/// Reads a file.
#[tool(read_only)]
pub(crate) fn files(_context: &ToolContext, args: Place) -> Result<ToolOutput, Failure> {
    Ok(match std::fs::read_to_string(&args.path) {
        Ok(text) => ToolOutput::text(text),
        Err(error) => ToolOutput::error(format!("cannot read {}: {error}", args.path)),
    })
}

/// Arguments of `env`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Name {
    /// The name of the variable.
    pub(crate) name: String,
}

/// Reads an environment variable.
#[tool(read_only)]
#[expect(clippy::disallowed_methods, reason = "the tool attempts what no guest may do")]
pub(crate) fn env(_context: &ToolContext, args: Name) -> Result<ToolOutput, Failure> {
    Ok(match std::env::var(&args.name) {
        Ok(value) => ToolOutput::text(value),
        Err(error) => ToolOutput::error(format!("cannot read {}: {error}", args.name)),
    })
}

/// Returns all visible settings.
#[tool(read_only)]
pub(crate) fn secret_peek(_context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&settings::all::<Value>()?)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::http;
    use wattle_plugin::prelude::{ToolContext, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{effect_then_ask, files};

    #[test]
    fn the_effect_precedes_the_interrupt() {
        let host = FakeHost::new().http(|_| Ok(http::Response::new(201, "")));
        let args = json!({"url": "http://a/b", "question": "done?"});
        let context = ToolContext { call_id: "call-1".to_owned(), ..ToolContext::default() };
        assert!(host.run(|| testing::call_tool::<effect_then_ask>(&context, &args)).is_err());
        assert_eq!((host.http_requests().len(), host.questions().len()), (1, 1));
        let host = host.answer("yes");
        let output = host.run(|| testing::call_tool::<effect_then_ask>(&context, &args)).unwrap();
        assert_eq!(output.structured, Some(json!({"status": 201, "answer": "yes"})));
    }

    #[test]
    fn an_unreadable_file_is_an_error_for_the_model() {
        let args = json!({"path": "/there/is/no/such/file"});
        let output = testing::call_tool::<files>(&ToolContext::default(), &args).unwrap();
        assert!(output.is_error);
    }
}
