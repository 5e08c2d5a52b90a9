//! Nodes that call the host: models, HTTP, SQL, memory, blobs, tools, clock and random numbers.

use wattle_plugin::llm::StreamEvent;
use wattle_plugin::prelude::{
    BlobRef, Context, Deserialize, Empty, Failure, JsonSchema, Serialize, Value, blob, clock, emit,
    http, interrupt, json, llm, memory, node, params, random, settings, sql, tools,
};
use wattle_plugin::tool::ToolInfo;

use crate::basic::Text;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Question {
    /// The question.
    question: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    /// The text.
    answer: String,
    /// The number of the document.
    number: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Guess {
    /// A number.
    number: i64,
}

/// Asks a model for a text and for a document.
#[node]
pub(crate) fn ask(_context: &Context, input: Question) -> Result<Answered, Failure> {
    let request = llm::Request::route("chat").system("Answer in one word.");
    let answer = request.user(input.question.as_str()).complete()?.text();
    let request = llm::Request::route("chat").user(input.question).schema::<Guess>("guess");
    let completion = request.temperature(0.0).max_output_tokens(100).complete()?;
    let Guess { number } = completion.structured()?;
    Ok(Answered { answer, number })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Streamed {
    /// The text of the pieces.
    streamed: String,
    /// The text of the completion.
    answer: String,
}

/// Reads a completion in pieces and emits them.
#[node]
pub(crate) fn stream(_context: &Context, input: Question) -> Result<Streamed, Failure> {
    let mut events = llm::Request::route("chat").user(input.question).stream()?;
    let mut streamed = String::new();
    for event in &mut events {
        let event = event?;
        match &event {
            StreamEvent::Text(text) => streamed.push_str(text),
            StreamEvent::Restart => streamed.clear(),
            _ => {}
        }
        emit::custom("piece", piece(event))?;
    }
    Ok(Streamed { streamed, answer: events.finish()?.text() })
}

fn piece(event: StreamEvent) -> Value {
    match event {
        StreamEvent::Text(text) => json!({ "text": text }),
        StreamEvent::Reasoning(text) => json!({ "reasoning": text }),
        StreamEvent::ToolCallDelta { index, name, arguments } => json!([index, name, arguments]),
        StreamEvent::Restart => json!("restart"),
        StreamEvent::Other(value) => value,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Address {
    /// The URL.
    url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Fetched {
    /// The status of the response.
    status: i64,
    /// The number in the response.
    call: i64,
}

#[derive(Debug, Deserialize)]
struct Called {
    call: i64,
}

/// Sends a request.
#[node]
pub(crate) fn fetch(_context: &Context, input: Address) -> Result<Fetched, Failure> {
    let request = http::Request::post(input.url).query("page", "1 2").header("x-mark", "a");
    let request = request.json(&json!({ "n": 1 }))?.idempotency_key("key").timeout_ms(5_000);
    let response = request.send()?;
    let Called { call } = response.json()?;
    Ok(Fetched { status: response.status.into(), call })
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Batch {
    /// The question.
    question: String,
    /// The URL.
    url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Batched {
    /// Texts and failures.
    answers: Vec<Value>,
    /// Bodies and failures.
    responses: Vec<Value>,
}

/// Calls models and sends requests in batches, whose first requests are invalid.
#[node]
pub(crate) fn batch(_context: &Context, input: Batch) -> Result<Batched, Failure> {
    let prompt = || llm::Request::route("chat").user(input.question.as_str());
    let completions = llm::complete_all(vec![prompt().with_extra("candidate", "first"), prompt()]);
    let post = || http::Request::post(input.url.as_str());
    let responses = http::send_all(vec![post().blob(BlobRef("none".to_owned())), post()]);
    let answers = completions.into_iter().map(|it| result(it.map(|it| json!(it.text()))));
    let responses = responses.into_iter().map(|it| result(it.and_then(|it| it.json())));
    Ok(Batched { answers: answers.collect(), responses: responses.collect() })
}

fn result(result: Result<Value, Failure>) -> Value {
    match result {
        Ok(output) => json!({ "output": output }),
        Err(failure) => json!({ "code": failure.code, "message": failure.message }),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Item {
    /// The name.
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Booked {
    /// The row.
    rows: Vec<Value>,
}

/// Writes a row in a transaction and reads it.
#[node]
pub(crate) fn book(_context: &Context, input: Item) -> Result<Booked, Failure> {
    let transaction = sql::database("shop").begin()?;
    let insert = "INSERT INTO item (name, price, sold, note) VALUES ($1, $2, $3, $4) RETURNING id";
    let executed = transaction.execute(insert, params![input.name, 2.5, true, None::<String>])?;
    let id: i64 = executed.returned.one()?.get("id")?;
    let select = "SELECT id, name, price, sold, note FROM item WHERE id = $1";
    let rows = transaction.query(select, params![id])?;
    transaction.commit()?;
    Ok(Booked { rows: rows.to_json() })
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Fact {
    /// The fact.
    fact: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Remembered {
    /// The documents.
    found: Vec<Value>,
    /// Namespaces with documents.
    namespaces: Vec<Vec<String>>,
    /// The stored bytes as text.
    bytes: String,
    /// Code of the failure for a namespace without a grant.
    refused: String,
}

/// Stores a document and bytes, and finds them.
#[node]
pub(crate) fn remember(_context: &Context, input: Fact) -> Result<Remembered, Failure> {
    let namespace = ["users", "7"];
    memory::put(&namespace, "fact", json!({ "text": input.fact }))?;
    let read = memory::get(&namespace, "fact")?;
    let searched = memory::Search::under(&["users"]).query("tea").run()?;
    let found = read.into_iter().chain(searched).map(|item| item.value).collect();
    let namespaces = memory::list_namespaces(&["users"], None, 10, 0)?;
    let stored = blob::put(input.fact.as_bytes(), "text/plain")?;
    let bytes = String::from_utf8(blob::get(&stored)?)?;
    let refused = memory::put(&["others"], "fact", json!({})).err();
    let refused = refused.map(|failure| failure.code).unwrap_or_default();
    Ok(Remembered { found, namespaces, bytes, refused })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Results {
    /// Outputs and failures.
    results: Vec<Value>,
}

/// Calls tools at once: with arguments, with invalid ones, and one that does not exist.
#[node]
pub(crate) fn both(_context: &Context, input: Text) -> Result<Results, Failure> {
    let calls = vec![
        tools::Call::new("count_words", json!({ "text": input.text })).call_id("a"),
        tools::Call::new("count_words", json!({})).call_id("b"),
        tools::Call::new("count_letters", json!({})).call_id("c"),
    ];
    let outputs = tools::call_all(calls).into_iter();
    let results = outputs.map(|it| result(it.map(|it| json!(it.structured))));
    Ok(Results { results: results.collect() })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listed {
    /// The tools.
    tools: Vec<Value>,
}

/// Lists the tools that the plugin may call.
#[node]
pub(crate) fn list_tools(_context: &Context, _input: Empty) -> Result<Listed, Failure> {
    Ok(Listed { tools: tools::list()?.iter().map(description).collect() })
}

fn description(tool: &ToolInfo) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "arguments_schema": tool.arguments_schema,
        "accepts_invalid": tool.accepts_invalid,
        "read_only": tool.hints().read_only,
        "reference": tool.reference(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Price {
    /// In cents.
    amount: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Bought {
    /// What the tool says.
    receipt: String,
}

/// Calls a tool that asks a person.
#[node]
pub(crate) fn buy(_context: &Context, input: Price) -> Result<Bought, Failure> {
    let call = tools::Call::new("pay", json!({ "amount": input.amount })).call_id("p");
    Ok(Bought { receipt: call.call()?.text_content() })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Measured {
    /// Whether the bytes are those before the question.
    same: bool,
    /// A setting.
    color: String,
}

/// Reads the clock and random bytes, and asks for the bytes.
#[node]
pub(crate) fn measure(_context: &Context, _input: Empty) -> Result<Measured, Failure> {
    let now = clock::now_ms();
    let date = clock::to_zone(now, Some("Asia/Shanghai"))?.civil.date();
    let bytes: String = random::bytes(8).iter().map(|byte| format!("{byte:02x}")).collect();
    let question = json!({ "now": now, "date": date, "bytes": bytes });
    let answer: String = interrupt::ask_with_schema(question)?;
    Ok(Measured { same: answer == bytes, color: settings::require("color")? })
}
