//! Tools that reach for the outside: hosts, databases, files, environment, settings.

use wattle_plugin::prelude::{
    Deserialize, Empty, Failure, JsonSchema, ToolContext, ToolOutput, Value, http, interrupt, json,
    settings, sql, tool,
};

/// An address.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Address {
    /// Where to send a GET.
    pub(crate) url: String,
}

/// Sends a GET and says what came back.
#[tool(read_only)]
pub(crate) fn net(_context: &ToolContext, args: Address) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(http::Request::get(args.url).send()?.text()))
}

/// Where to wait, and what to say then.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// Where to send a GET, to something that keeps it waiting.
    pub(crate) url: String,
    /// What to say.
    pub(crate) text: String,
}

/// Sends a GET, then says something.
#[tool(read_only)]
pub(crate) fn slow_then(_context: &ToolContext, args: Wait) -> Result<ToolOutput, Failure> {
    http::Request::get(args.url).send()?;
    Ok(ToolOutput::text(args.text))
}

/// Where an effect goes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Target {
    /// Where to send a POST.
    pub(crate) url: String,
    /// Its idempotency key; none if it is absent.
    #[serde(default)]
    pub(crate) key: Option<String>,
}

/// Sends a POST and says the status.
#[tool]
pub(crate) fn effect(context: &ToolContext, args: Target) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({ "status": post(context, args.url, args.key)? }))
}

/// Where an effect goes, and what to ask afterwards.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TargetAndWish {
    /// Where to send a POST.
    pub(crate) url: String,
    /// What to ask.
    pub(crate) question: String,
}

/// Sends a POST, then asks a person: the POST must not be sent again after the answer.
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

/// What to query.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Query {
    /// The database.
    pub(crate) database: String,
    /// The statement.
    pub(crate) statement: String,
}

/// Queries a database that it should have no business with.
#[tool(read_only)]
pub(crate) fn other_db(_context: &ToolContext, args: Query) -> Result<ToolOutput, Failure> {
    let rows = sql::database(&args.database).query(&args.statement, wattle_plugin::params![])?;
    let names: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    ToolOutput::json(&json!({ "columns": names, "rows": rows.values.len() }))
}

/// A path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Place {
    /// The path.
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

/// The name of something.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Name {
    /// The name.
    pub(crate) name: String,
}

/// Reads an environment variable.
#[tool(read_only)]
#[expect(clippy::disallowed_methods, reason = "it tries what a guest must not be able to do")]
pub(crate) fn env(_context: &ToolContext, args: Name) -> Result<ToolOutput, Failure> {
    Ok(match std::env::var(&args.name) {
        Ok(value) => ToolOutput::text(value),
        Err(error) => ToolOutput::error(format!("cannot read {}: {error}", args.name)),
    })
}

/// Says all settings that it sees.
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
    fn the_effect_comes_before_the_question() {
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
    fn what_cannot_be_read_is_an_error_for_the_model() {
        let args = json!({"path": "/there/is/no/such/file"});
        let output = testing::call_tool::<files>(&ToolContext::default(), &args).unwrap();
        assert!(output.is_error);
    }
}
