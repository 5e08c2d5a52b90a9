//! Tests of the entries that the attributes generate, from the perspective of the host.

use serde_json::Value;

use crate::export::{Handler, HandlerEntry, Node, NodeEntry, Reducer, Tool};
use crate::node::Conversation;
use crate::prelude::{
    ChannelRef, Context, Deserialize, Empty, Failure, JsonSchema, Outcome, Reads, Request,
    Response, Serialize, ToolContext, ToolOutput, Unchecked, code, handler, json, node, reducer,
    tool,
};
use crate::testing;
use crate::tool::ToolHints;

#[derive(Deserialize, JsonSchema)]
struct Input {
    text: String,
    limit: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Update {
    words: usize,
}

/// Counts the words of a text.
///
/// Up to a limit.
#[node]
fn count_words(_context: &Context, input: Input) -> Result<Update, Failure> {
    let limit = input.limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(Update { words: input.text.split_whitespace().take(limit).count() })
}

#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// How often.
    times: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { times: 1 }
    }
}

/// Repeats a text.
#[node(config = Config)]
fn repeat(context: &Context, input: Input) -> Result<Value, Failure> {
    let config: Config = context.config()?;
    Ok(json!({ "text": input.text.repeat(config.times as usize) }))
}

const TALK: ChannelRef = ChannelRef::config_or("messages", "talk");

/// Returns which part of the conversation its input has.
#[node(reads = Reads::channels(&[TALK]).with_conversation(TALK))]
fn converse(context: &Context, _input: Value) -> Result<Value, Failure> {
    Ok(json!({ "part": context.conversation()? }))
}

#[node(name = "route-it")]
fn route(context: &Context, _input: Empty) -> Result<Outcome<()>, Failure> {
    Ok(Outcome::nothing().goto("next").send("other", json!({"step": context.step})))
}

/// Joins words.
#[node]
fn join(
    /// Without whitespace.
    words: Vec<String>,
    #[serde(default)] end: String,
    times: Option<u32>,
) -> Result<Value, Failure> {
    let times = times.map_or(1, |times| times as usize);
    Ok(json!({ "text": words.join(" ").repeat(times) + &end }))
}

/// Names the node, and counts the items of a channel.
#[node(channels)]
fn named(context: &Context, arguments: Vec<String>) -> Result<Value, Failure> {
    Ok(json!({ "text": format!("{} {}", context.node, arguments.len()) }))
}

/// Reads no channel.
#[node(channels)]
fn tick(context: &Context) -> Result<Value, Failure> {
    Ok(json!({ "text": context.step.to_string() }))
}

/// Takes a number.
#[tool(read_only)]
fn strict(_context: &ToolContext, args: Number) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&args.number)
}

/// Takes anything.
#[tool]
fn lenient(_context: &ToolContext, args: Unchecked<Number>) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(format!("{} {:?}", args.raw, args.violations)))
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    /// Any whole number.
    number: i64,
}

/// Repeats a word.
#[tool(idempotent)]
fn echo(
    /// Without whitespace.
    word: String,
    #[serde(default)] times: u8,
    end: Option<String>,
) -> Result<ToolOutput, Failure> {
    let end = end.unwrap_or_default();
    Ok(ToolOutput::text(word.repeat(usize::from(times)) + &end))
}

/// Counts its arguments, for which the entry has a variable with the same name.
#[tool]
fn arguments(arguments: Vec<String>) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(arguments.len().to_string()))
}

/// Takes nothing.
#[tool]
fn nothing() -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text("nothing"))
}

/// Adds up.
#[reducer]
fn sum(current: Option<i64>, updates: Vec<i64>) -> Result<i64, Failure> {
    Ok(current.unwrap_or_default() + updates.iter().sum::<i64>())
}

#[handler(GET, "/items/{id}")]
fn item(request: &Request) -> Result<Response, Failure> {
    Ok(Response::text(200, request.param::<String>("id")?))
}

crate::export! {
    nodes: [count_words, repeat, converse, route, join, named, tick],
    tools: [strict, lenient, echo, arguments, nothing],
    reducers: [sum],
    handlers: [item],
}

fn context(node: &str) -> Context {
    Context { node: node.to_owned(), ..Context::default() }
}

#[test]
fn node_is_described_by_its_function() {
    let NodeEntry { name, doc, .. } = count_words::ENTRY;
    assert_eq!((name, doc), ("count_words", "Counts the words of a text.\n\nUp to a limit."));
    assert_eq!(route::ENTRY.name, "route-it");
    let (input, output) = testing::node_schemas::<count_words>();
    assert_eq!(
        input,
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "limit": {"type": ["integer", "null"], "format": "uint32", "minimum": 0},
            },
            "required": ["text"],
        })
    );
    assert_eq!(output["properties"]["words"]["type"], "integer");
    let (input, output) = testing::node_schemas::<route>();
    assert_eq!(input, json!({"type": "object", "properties": {}}));
    assert_eq!(output, input);
}

#[test]
fn node_runs_on_documents() {
    let input = json!({"text": "a b c", "limit": 2, "more": true});
    let decision = testing::run_node::<count_words>(&context("count_words"), &input).unwrap();
    assert_eq!(decision.update("words"), Some(&json!(2)));
    let decision = testing::run_node::<route>(&context("route-it"), &json!({})).unwrap();
    assert_eq!(decision.goto, ["next"]);
    assert_eq!(decision.sends[0].input, json!({"step": 0}));
}

#[test]
fn parameters_of_a_node_are_its_channels() {
    assert_eq!((join::ENTRY.name, join::ENTRY.doc), ("join", "Joins words."));
    let (input, _) = testing::node_schemas::<join>();
    assert_eq!(input["properties"]["words"]["description"], "Without whitespace.");
    assert_eq!(input["required"], json!(["words"]));

    let run = |input: Value| testing::run_node::<join>(&context("join"), &input);
    let decision = run(json!({"words": ["a", "b"], "end": "!", "times": 2, "more": 1})).unwrap();
    assert_eq!(decision.update("text"), Some(&json!("a ba b!")));
    assert_eq!(run(json!({"words": ["a"]})).unwrap().update("text"), Some(&json!("a")));
    let failure = run(json!({"words": ["a"], "times": "x"})).unwrap_err();
    let expected = "the input of node `join` is invalid at `times`:";
    assert!(failure.message.starts_with(expected), "{}", failure.message);
    assert_eq!(join(vec!["a".to_owned()], "!".to_owned(), None), Ok(json!({"text": "a!"})));
}

#[test]
fn channels_follow_a_context() {
    let input = json!({"arguments": ["a", "b"]});
    let decision = testing::run_node::<named>(&context("named"), &input).unwrap();
    assert_eq!(decision.update("text"), Some(&json!("named 2")));

    let (input, _) = testing::node_schemas::<tick>();
    assert_eq!(input, json!({"type": "object", "properties": {}}));
    let context = Context { step: 3, ..Context::default() };
    let decision = testing::run_node::<tick>(&context, &json!({})).unwrap();
    assert_eq!(decision.update("text"), Some(&json!("3")));
}

#[test]
fn configuration_has_a_schema_and_is_read() {
    let schema = testing::config_schema::<repeat>().unwrap();
    assert_eq!(schema["properties"]["times"]["description"], "How often.");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(testing::config_schema::<count_words>(), None);
    let run = |context: Context| {
        let decision = testing::run_node::<repeat>(&context, &json!({"text": "a"}))?;
        Ok::<_, Failure>(decision.update("text").cloned())
    };
    assert_eq!(run(context("repeat")), Ok(Some(json!("a"))));
    assert_eq!(run(context("repeat").with_config(Value::Null)), Ok(Some(json!("a"))));
    assert_eq!(run(context("repeat").with_config(json!({"times": 3}))), Ok(Some(json!("aaa"))));
    let failure = run(context("repeat").with_config(json!({"time": 3}))).unwrap_err();
    let expected = "the configuration of node `repeat` is invalid at `time`:";
    assert!(failure.message.starts_with(expected), "{}", failure.message);
}

#[test]
fn node_has_the_conversation_that_it_declares() {
    let talk = json!({"config": "messages", "default": "talk"});
    let declared = json!({"channels": [talk], "conversation": talk});
    assert_eq!(testing::node_reads::<converse>(), Some(declared));
    assert_eq!(testing::node_reads::<repeat>(), None);
    let run = |context: Context| {
        let input = json!({"talk": [1, 2], "other": [1], "title": "a"});
        testing::run_node::<converse>(&context, &input).unwrap().update("part").cloned().unwrap()
    };
    let part = |channel: &str, from, length| Conversation { channel: channel.into(), from, length };
    assert_eq!(run(context("converse")), json!(part("talk", 0, 2)));
    for (channel, length) in [("other", 1), ("title", 0), ("missing", 0)] {
        let context = context("converse").with_config(json!({"messages": channel}));
        assert_eq!(run(context), json!(part(channel, 0, length)));
    }
    let later = part("talk", 4, 6);
    assert_eq!(run(context("converse").with_conversation(later.clone())), json!(later));
    let failure = converse(&context("converse"), json!({})).unwrap_err();
    assert_eq!(failure.code, code::UNSUPPORTED);
}

#[test]
fn tool_has_only_declared_hints() {
    assert_eq!(strict::ENTRY.hints, ToolHints { read_only: true, idempotent: false });
    assert_eq!(lenient::ENTRY.hints, ToolHints::default());
}

#[test]
fn invalid_input_is_rejected_with_its_path() {
    let input = json!({"text": "a", "limit": "b"});
    let failure = testing::run_node::<count_words>(&context("count_words"), &input).unwrap_err();
    assert_eq!(failure.code, code::INVALID);
    let expected = "the input of node `count_words` is invalid at `limit`:";
    assert!(failure.message.starts_with(expected), "{}", failure.message);
}

#[test]
fn only_unchecked_tools_accept_invalid_arguments() {
    assert!(!(strict::ENTRY.function)().accepts_invalid());
    assert!((lenient::ENTRY.function)().accepts_invalid());
    assert_eq!(testing::tool_schema::<strict>(), testing::tool_schema::<lenient>());
    let wrong = json!({"number": "x"});
    let context =
        ToolContext { violations: vec!["`number` is text".to_owned()], ..ToolContext::default() };
    assert!(testing::call_tool::<strict>(&context, &wrong).is_err());
    let output = testing::call_tool::<lenient>(&context, &wrong).unwrap();
    assert_eq!(output.text_content(), r#"{"number":"x"} ["`number` is text"]"#);
    let output = testing::call_tool::<strict>(&context, &json!({"number": 7})).unwrap();
    assert_eq!(output.structured::<i64>(), Ok(7));
}

#[test]
fn argument_fields_have_descriptions() {
    let schema = testing::tool_schema::<strict>();
    assert_eq!(schema["properties"]["number"]["description"], "Any whole number.");
}

#[test]
fn parameters_of_a_tool_are_its_arguments() {
    assert_eq!((echo::ENTRY.name, echo::ENTRY.description), ("echo", "Repeats a word."));
    let schema = testing::tool_schema::<echo>();
    assert_eq!(schema["properties"]["word"]["description"], "Without whitespace.");
    assert_eq!(schema["required"], json!(["word"]));

    let call = |arguments: Value| testing::call_tool::<echo>(&ToolContext::default(), &arguments);
    let output = call(json!({"word": "ha", "times": 2, "end": "!"})).unwrap();
    assert_eq!(output.text_content(), "haha!");
    let failure = call(json!({"word": "ha", "times": "x"})).unwrap_err();
    assert!(failure.message.starts_with("the arguments are invalid at `times`:"), "{failure:?}");

    let output =
        testing::call_tool::<arguments>(&ToolContext::default(), &json!({"arguments": ["a", "b"]}));
    assert_eq!(output.unwrap().text_content(), "2");

    assert_eq!(testing::tool_schema::<nothing>(), json!({"type": "object", "properties": {}}));
    let output = testing::call_tool::<nothing>(&ToolContext::default(), &json!({})).unwrap();
    assert_eq!(output.text_content(), "nothing");
}

#[test]
fn reducer_runs_on_documents() {
    let updates = ["1".to_owned(), "2".to_owned()];
    assert_eq!((sum::ENTRY.reduce)(Some("4"), &updates), Ok("7".to_owned()));
    assert_eq!((sum::ENTRY.reduce)(None, &updates), Ok("3".to_owned()));
    let failure = (sum::ENTRY.reduce)(None, &["1".to_owned(), "null".to_owned()]).unwrap_err();
    assert!(failure.message.starts_with("update 1 is invalid"), "{}", failure.message);
}

#[test]
fn handler_has_its_route() {
    let HandlerEntry { method, path, handle, .. } = item::ENTRY;
    assert_eq!((method, path), ("GET", "/items/{id}"));
    let request = Request::new("GET", "/items/7").with_param("id", "7");
    assert_eq!(handle(&request).map(|response| response.status), Ok(200));
}

/// A name that a plugin may use beside `export!`.
const HANDLERS: usize = 1;

#[test]
fn exported_handlers_are_listed_for_tests() {
    assert_eq!(WATTLE_HANDLERS.len(), HANDLERS);
    let routes: Vec<_> = WATTLE_HANDLERS.iter().map(|entry| (entry.method, entry.path)).collect();
    assert_eq!(routes, [("GET", "/items/{id}")]);
}

#[test]
#[should_panic(expected = "missing/openapi.json")]
fn missing_openapi_document_is_reported() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/missing/openapi.json");
    testing::check_openapi(file, "sdk", WATTLE_HANDLERS);
}

#[test]
fn node_can_return_any_object() {
    #[node]
    fn free(_context: &Context, input: Value) -> Result<Value, Failure> {
        Ok(input)
    }
    let decision = testing::run_node::<free>(&context("free"), &json!({"a": 1})).unwrap();
    assert_eq!(decision.update("a"), Some(&json!(1)));
    assert_eq!(testing::node_schemas::<free>(), (json!({}), json!({})));
}
