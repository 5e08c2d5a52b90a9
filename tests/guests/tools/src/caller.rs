//! Nodes that call tools, and a tool that calls others.

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Outcome, Serialize, ToolContext, ToolOutput,
    Value, json, llm, node, tool, tools,
};

/// A tool call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Call {
    /// The name of the tool.
    pub(crate) tool: String,
    /// The arguments of the tool; an empty object if they are absent.
    #[serde(default)]
    pub(crate) arguments: Option<Value>,
    /// The id of the call; the host generates one if it is absent.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// Timeout of the call, in milliseconds.
    #[serde(default)]
    pub(crate) timeout_ms: Option<u32>,
}

impl From<Call> for tools::Call {
    fn from(call: Call) -> Self {
        let arguments = call.arguments.unwrap_or_else(|| json!({}));
        Self {
            call_id: call.id.unwrap_or_default(),
            timeout_ms: call.timeout_ms,
            ..Self::new(call.tool, arguments)
        }
    }
}

/// Input of `call_tools` and arguments of `nested`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Calls {
    /// The calls of one call batch.
    pub(crate) calls: Vec<Call>,
}

/// Input of `call_tool`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct OneCall {
    /// The single call.
    pub(crate) call: Call,
}

/// Calls tools in one call batch. `results` gets one object for each call: `text`, `structured` and
/// `is_error`, or `failure` with code, message and `retryable`. Writes the updates of the tools.
#[node]
pub(crate) fn call_tools(_context: &Context, input: Calls) -> Result<Value, Failure> {
    let calls = input.calls.into_iter().map(Into::into).collect();
    Ok(updates(tools::call_all(calls)))
}

/// Calls one tool, without a call batch. `results` gets one object as from `call_tools`.
#[node]
pub(crate) fn call_tool(_context: &Context, input: OneCall) -> Result<Value, Failure> {
    Ok(updates(vec![tools::Call::from(input.call).call()]))
}

fn updates(answers: Vec<Result<ToolOutput, Failure>>) -> Value {
    let mut updates = serde_json::Map::new();
    updates.insert("results".to_owned(), answers.iter().map(result).collect());
    for update in answers.into_iter().flatten().flat_map(|output| output.updates) {
        updates.insert(update.channel, update.value);
    }
    Value::Object(updates)
}

fn result(answer: &Result<ToolOutput, Failure>) -> Value {
    match answer {
        Ok(output) => json!({
            "text": output.text_content(),
            "structured": output.structured,
            "is_error": output.is_error,
        }),
        Err(Failure { code, message, retryable, .. }) => json!({
            "failure": { "code": code, "message": message, "retryable": retryable },
        }),
    }
}

/// Calls tools in one call batch.
#[tool]
pub(crate) fn nested(_context: &ToolContext, args: Calls) -> Result<ToolOutput, Failure> {
    let calls = args.calls.into_iter().map(Into::into).collect();
    let results: Value = tools::call_all(calls).iter().map(result).collect();
    ToolOutput::json(&results)
}

/// Output of `list_tools`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listed {
    /// `name`, `description` and `read_only` of each tool.
    pub(crate) tools: Vec<Value>,
}

/// Lists the granted tools.
#[node]
pub(crate) fn list_tools(_context: &Context, _input: Empty) -> Result<Listed, Failure> {
    let tools = tools::list()?.into_iter().map(|info| {
        let read_only = info.hints().read_only;
        json!({ "name": info.name, "description": info.description, "read_only": read_only })
    });
    Ok(Listed { tools: tools.collect() })
}

/// Input of `converse`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Conversation {
    /// The route of the model.
    pub(crate) route: String,
    /// `history` in `extra` of each request.
    #[serde(default)]
    pub(crate) history: Value,
    /// The channel that a history can name.
    pub(crate) messages: Vec<Value>,
}

/// Calls a model with a history: alone, twice in one call batch, and as a stream. `results` gets one
/// object for each call: `call_ids` of `extra`, or `failure` with the code. `read` gets the number
/// of messages in the input.
#[node]
pub(crate) fn converse(_context: &Context, input: Conversation) -> Result<Value, Failure> {
    let request = || {
        let request = llm::Request::route(input.route.as_str()).system("be brief");
        request.with_extra("history", input.history.clone())
    };
    let mut completions = vec![request().complete()];
    completions.extend(llm::complete_all(vec![request(), request()]));
    completions.push(request().stream().and_then(llm::CompletionStream::finish));
    let result = |completion: Result<llm::Completion, Failure>| match completion {
        Ok(completion) => json!({ "call_ids": completion.extra.get("call_ids") }),
        Err(failure) => json!({ "failure": failure.code }),
    };
    let results: Value = completions.into_iter().map(result).collect();
    Ok(json!({ "results": results, "read": input.messages.len() }))
}

/// Input of `watch`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Prompt {
    /// The route of the model.
    pub(crate) route: String,
    /// The user message to the model.
    pub(crate) text: String,
    /// Number of stream events after which the stream is dropped. The whole stream is read if it is
    /// absent.
    #[serde(default)]
    pub(crate) most: Option<u32>,
}

/// Output of `watch`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Watched {
    /// The text, assembled from the deltas.
    pub(crate) text: String,
    /// Number of stream events that were read.
    pub(crate) pieces: u32,
}

/// Streams a completion of the model of `route` and assembles its text from the deltas. With `most`
/// it drops the stream after `most` events.
#[node]
pub(crate) fn watch(_context: &Context, input: Prompt) -> Result<Outcome<Watched>, Failure> {
    let mut stream = llm::Request::route(input.route).user(input.text).stream()?;
    let mut watched = Watched { text: String::new(), pieces: 0 };
    for event in &mut stream {
        match event? {
            llm::StreamEvent::Text(piece) => watched.text.push_str(&piece),
            llm::StreamEvent::Restart => watched.text.clear(),
            _ => {}
        }
        watched.pieces += 1;
        if input.most.is_some_and(|most| watched.pieces >= most) {
            return Ok(Outcome::new(watched));
        }
    }
    let whole = stream.finish()?.text();
    if whole == watched.text {
        Ok(Outcome::new(watched))
    } else {
        let text = watched.text;
        Err(Failure::internal(format!("the deltas are `{text}`, the completion is `{whole}`")))
    }
}

/// The configuration of `configured`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Any number; 1 by default.
    pub(crate) times: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { times: 1 }
    }
}

/// Output of `configured`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Configured {
    /// The configuration of the node.
    pub(crate) config: Config,
}

/// Writes its configuration.
#[node(config = Config)]
pub(crate) fn configured(context: &Context, _input: Empty) -> Result<Configured, Failure> {
    Ok(Configured { config: context.config()? })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Failure, ToolOutput, json, llm};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{call_tools, configured, watch};

    #[test]
    fn results_are_in_call_order_and_updates_are_written() {
        let host = FakeHost::new()
            .tool("good", |_| Ok(ToolOutput::text("well").with_update("sum", 3)))
            .tool("bad", |_| Err(Failure::new("misdeed", "no")));
        let input = json!({"calls": [{"tool": "bad"}, {"tool": "good", "arguments": {}}]});
        let decision =
            host.run(|| testing::run_node::<call_tools>(&Context::default(), &input)).unwrap();
        let results = decision.update("results").unwrap();
        assert_eq!(results[0]["failure"]["code"], "misdeed");
        assert_eq!(results[1]["text"], "well");
        assert_eq!(decision.update("sum"), Some(&json!(3)));
    }

    #[test]
    fn a_stream_is_read_completely_or_dropped() {
        let run = |input| {
            let host = FakeHost::new().llm(|_| Ok(llm::Completion::of_text("one two three")));
            host.run(|| testing::run_node::<watch>(&Context::default(), &input)).unwrap()
        };
        let decision = run(json!({"route": "chat", "text": "go"}));
        assert_eq!(decision.update("text"), Some(&json!("one two three")));
        let decision = run(json!({"route": "chat", "text": "go", "most": 2}));
        assert_eq!(decision.update("text"), Some(&json!("one two ")));
    }

    #[test]
    fn the_configuration_has_a_default() {
        let run = |context: Context| testing::run_node::<configured>(&context, &json!({})).unwrap();
        let decision = run(Context::default());
        assert_eq!(decision.update("config"), Some(&json!({"times": 1})));
        let decision = run(Context::default().with_config(json!({"times": 2})));
        assert_eq!(decision.update("config"), Some(&json!({"times": 2})));
    }
}
