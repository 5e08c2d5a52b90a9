//! Third-party gateways: one model in all three formats.

use serde_json::json;
use tokio::process::Command;
use wattle_graph::llm::{
    Completion, CompletionRequest, FinishReason, Part, Role, ToolResult, Usage,
};
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::process::Program;
use wattle_model::Routes;

use crate::support::{KEY, RecordedDeltas, ask, ask_tools, message, routes, stream, table};

/// The path of each format at a gateway.
const KINDS: [(&str, &str); 3] = [("openai", "/v1"), ("gemini", "/v1beta"), ("anthropic", "/v1")];

/// Timeout of a gateway. A gateway responds within milliseconds, but starts slowly on a busy
/// machine.
const PATIENCE: &str = "60s";

/// A message to a model, and its completion.
const WORDS: (&str, &str) = ("greet me", "Thank you, I have read your message: greet me");

/// A message that makes the model call a tool.
const CALL: &str = r#"call add {"a":1,"b":2}"#;

/// The result of the tool, which the model repeats.
const RESULT: &str = "three";

/// Calls a model through a gateway in each format, with whole and streamed responses: for a text,
/// for a tool call, and for a text about the result of the tool.
pub(crate) async fn check(address: &str, model: &str, is_right: impl Fn(&Usage) -> bool) {
    for (kind, path) in KINDS {
        for streams in [false, true] {
            let what = format!("{model}, {kind}, streams: {streams}");
            let base = format!("{address}{path}");
            let route = json!({ "model": model, "timeout": PATIENCE });
            let routes = routes(table(kind, &base, &json!({ "stream": streams }), &route));

            let (said, kept) = answer(&routes, &ask(WORDS.0), &what).await;
            assert_eq!(said.text(), WORDS.1, "{what}");
            assert_eq!(said.finish_reason, FinishReason::Stop, "{what}");
            assert!(is_right(&said.usage), "{what}: {:?}", said.usage);
            assert!(!streams || kept.len() > 1, "{what}: {}", kept.len());

            let mut request = ask_tools(CALL);
            let (asked, _) = answer(&routes, &request, &what).await;
            assert_eq!(asked.finish_reason, FinishReason::ToolCalls, "{what}");
            assert!(is_right(&asked.usage), "{what}: {:?}", asked.usage);
            let call = asked.tool_calls().next().cloned().unwrap();
            assert_eq!(asked.tool_calls().count(), 1, "{what}: {:?}", asked.parts);
            assert_eq!(call.name, "add", "{what}");
            assert_eq!(call.arguments, json!({ "a": 1, "b": 2 }), "{what}");

            let result = ToolResult { call_id: call.id, content: RESULT.into(), is_error: false };
            request.messages.push(message(Role::Assistant, asked.parts));
            request.messages.push(message(Role::Tool, vec![Part::ToolResult(result)]));
            let (ended, _) = answer(&routes, &request, &what).await;
            let text = ended.text();
            assert!(text.starts_with("The tools answered:"), "{what}: {text}");
            assert!(text.contains(RESULT), "{what}: {text}");
            assert!(is_right(&ended.usage), "{what}: {:?}", ended.usage);
        }
    }
}

/// Makes a call. Checks that its deltas add up to the completion.
async fn answer(
    routes: &Routes,
    request: &CompletionRequest,
    what: &str,
) -> (Completion, RecordedDeltas) {
    let (answer, kept) = stream(routes, request).await;
    let answer = answer.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    let spoken = answer.parts.iter().filter(|part| !matches!(part, Part::Other(_)));
    assert_eq!(kept.parts(), spoken.cloned().collect::<Vec<Part>>(), "{what}");
    (answer, kept)
}

/// Starts a gateway that is installed with npm, and returns its address. Dropping the program stops
/// it.
async fn of_npm() -> Result<(Program, String), LeftOut> {
    let folder = clients::node("gateway")?;
    let mut command = Command::new("node");
    command.args(["gateway.mjs", KEY]).current_dir(folder);
    let mut program = Program::start(command).unwrap();
    let line = program.ready(|line| line.starts_with("port ")).await.unwrap();
    let address = format!("http://127.0.0.1:{}", line.trim_start_matches("port "));
    Ok((program, address))
}

#[tokio::test]
async fn completions_and_tool_calls_pass_an_npm_gateway_in_every_format() {
    let (_program, address) = need!(of_npm().await);
    let usage = Usage { input_tokens: Some(12), output_tokens: Some(3), ..Usage::default() };
    check(&address, "m-1", |told| *told == usage).await;
}
