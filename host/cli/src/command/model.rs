//! `wattle model`: checks model routes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::llm::{
    Completion, CompletionRequest, Delta, Message, Part, ResponseSchema, Role, ToolDefinition,
    ToolResult,
};
use wattle_graph::suggest;
use wattle_model::Routes;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::model::DeltaSink;
use wattle_run::ports::{Caller, Model as _};
use wattle_run::text::Escaped;
use wattle_store::InMemoryBlobs;

use crate::args::ModelCheckArgs;
use crate::config::Config;
use crate::env::environment;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::open_routes;
use crate::output::Output;

/// Name of the app and of the plugin as which the command calls models.
const CALLER_NAME: &str = "check";

/// Number of characters of a completion that are shown.
const EXCERPT_CHARS: usize = 60;

/// Maximum number of output tokens of a turn. This number of tokens is inexpensive, and sufficient
/// for a model that reasons before it answers.
const MAX_OUTPUT_TOKENS: u32 = 2_000;

/// The results of a route.
#[derive(Clone, Debug, Serialize)]
struct Check {
    route: String,
    steps: Vec<Step>,
    /// Fields of requests that the services reject.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// One step of a route's check.
#[derive(Clone, Debug, Serialize)]
struct Step {
    step: &'static str,
    ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<CompletionSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

/// The completion of a step.
#[derive(Clone, Debug, Serialize)]
struct CompletionSummary {
    model: String,
    text: String,
    finish_reason: String,
    /// Number of streamed deltas.
    pieces: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
}

/// Calls the models of routes sequentially. Fails if any step fails.
pub(super) async fn check(
    config: &Config,
    args: ModelCheckArgs,
    output: Output,
) -> Result<Exit, Error> {
    let setup = |message: String| Error::Setup { what: "models", message };
    let (Ok(app), Ok(plugin)) = (AppName::new(CALLER_NAME), PluginName::new(CALLER_NAME)) else {
        return Err(setup(format!("`{CALLER_NAME}` is not a valid name")));
    };
    let owner = CallerId::of_app(&app);
    let caller = Caller { app, plugin, tenant: None, owner };
    let routes = open_routes(config.model.clone(), config, &environment());
    let routes = routes.map_err(|error| setup(error.to_string()))?;
    if let Some(unknown) = args.routes.iter().find(|route| !routes.has_route(&caller, route)) {
        let known: Vec<&str> = routes.names().collect();
        return Err(Error::NotFound {
            message: format!("there is no model route `{unknown}`"),
            hint: suggest::hint(unknown, "routes", known.iter().copied()),
        });
    }
    let mut checks = Vec::new();
    for route in args.routes {
        let route_caller =
            |streams| RouteCaller { routes: &routes, caller: &caller, route: &route, streams };
        let provider = config.model.routes.get(&route);
        let provider = provider.and_then(|route| config.model.providers.get(&route.provider));
        let usual = route_caller(provider.is_some_and(|it| it.stream));
        let steps = steps(&route_caller(false), &route_caller(true), &usual).await;
        let notes = routes.rejection_notes(&caller, &route);
        checks.push(Check { route, steps, notes });
    }
    let is_usable = checks.iter().flat_map(|check| &check.steps).all(|it| it.failure.is_none());
    output.data(&checks, |checks| checks.iter().map(render).collect::<Vec<_>>().join("\n"));
    Ok(if is_usable { Exit::Ok } else { Exit::Failed })
}

/// Executes the steps. The steps with a tool and with a schema use the streaming setting of the
/// provider.
async fn steps(
    whole: &RouteCaller<'_>,
    streamed: &RouteCaller<'_>,
    usual: &RouteCaller<'_>,
) -> Vec<Step> {
    vec![
        timed("whole", whole.check_text()).await,
        timed("streamed", streamed.check_text()).await,
        timed("tool", usual.check_tool()).await,
        timed("shape", usual.check_schema()).await,
    ]
}

async fn timed(
    step: &'static str,
    work: impl Future<Output = Result<CompletionSummary, Failure>>,
) -> Step {
    let started = Instant::now();
    let answer = work.await;
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (answer, failure) = match answer {
        Ok(answer) => (Some(answer), None),
        Err(failure) => (None, Some(failure)),
    };
    Step { step, ms, answer, failure }
}

/// Calls the models of one model route.
struct RouteCaller<'a> {
    routes: &'a Routes,
    caller: &'a Caller,
    route: &'a str,
    /// Whether completions are streamed.
    streams: bool,
}

/// Counts deltas.
#[derive(Default)]
struct DeltaCount(AtomicUsize);

impl DeltaSink for DeltaCount {
    fn push(&self, _delta: Delta) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl RouteCaller<'_> {
    fn request(&self, words: &str) -> CompletionRequest {
        let parts = vec![Part::Text(words.to_owned())];
        let messages = vec![Message { role: Role::User, parts }];
        let mut request = CompletionRequest::new(self.route, messages);
        request.max_output_tokens = Some(MAX_OUTPUT_TOKENS);
        request
    }

    async fn call(&self, request: &CompletionRequest) -> Result<(Completion, usize), Failure> {
        let (blobs, pieces) = (InMemoryBlobs::default(), DeltaCount::default());
        let (caller, streams) = (self.caller, self.streams);
        let answer = self.routes.complete_as(caller, request, &blobs, &pieces, streams);
        let answer = Box::pin(answer).await?;
        Ok((answer, pieces.0.into_inner()))
    }

    /// Requests a text completion.
    async fn check_text(&self) -> Result<CompletionSummary, Failure> {
        let (answer, pieces) = self.call(&self.request("Answer with the one word: ready")).await?;
        summarize(&answer, pieces, answer.answer_text())
    }

    /// Requests a tool call, and then a completion that uses the tool's result.
    async fn check_tool(&self) -> Result<CompletionSummary, Failure> {
        let mut request =
            self.request("Add 17 and 25 with the tool `add`. Then say the sum and nothing else.");
        request.tools = vec![ToolDefinition {
            name: "add".to_owned(),
            description: "Adds two numbers.".to_owned(),
            arguments_schema: json!({
                "type": "object",
                "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
                "required": ["a", "b"],
            }),
        }];
        let (first, pieces) = self.call(&request).await?;
        let results: Vec<Part> = first
            .tool_calls()
            .map(|call| {
                let number = |name: &str| call.arguments[name].as_f64().unwrap_or_default();
                let content = (number("a") + number("b")).to_string();
                Part::ToolResult(ToolResult { call_id: call.id.clone(), content, is_error: false })
            })
            .collect();
        if results.is_empty() {
            let text =
                format!("the model called no tool, but returned `{}`", excerpt(&first.text()));
            return Err(Failure::new(code::UNSUPPORTED, text));
        }
        request.messages.push(Message { role: Role::Assistant, parts: first.parts });
        request.messages.push(Message { role: Role::Tool, parts: results });
        let (second, more) = self.call(&request).await?;
        summarize(&second, pieces + more, second.answer_text())
    }

    /// Requests a structured completion with a schema.
    async fn check_schema(&self) -> Result<CompletionSummary, Failure> {
        let mut request = self.request("Which city is the capital of France?");
        request.response_schema = Some(ResponseSchema {
            name: "place".to_owned(),
            schema: json!({
                "type": "object",
                "properties": { "city": { "type": "string" } },
                "required": ["city"],
            }),
        });
        let (answer, pieces) = self.call(&request).await?;
        let document = answer.structured.as_ref().map(ToString::to_string);
        summarize(&answer, pieces, document)
    }
}

/// Converts a completion with its text or document. Fails without either.
fn summarize(
    answer: &Completion,
    pieces: usize,
    text: Option<String>,
) -> Result<CompletionSummary, Failure> {
    let finish_reason = answer.finish_reason.name().to_owned();
    let Some(text) = text else {
        let what = if answer.finish_reason.is_misread_call() {
            "ends with a tool call that its provider could not parse"
        } else {
            "has no text"
        };
        let text = format!("the completion {what}; its finish reason is `{finish_reason}`");
        return Err(Failure::new("no-answer", text));
    };
    let usage = &answer.usage;
    Ok(CompletionSummary {
        model: answer.model.clone(),
        text: excerpt(&text),
        finish_reason,
        pieces,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    })
}

/// Returns the beginning of a string on one line.
fn excerpt(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.chars().take(EXCERPT_CHARS).collect()
}

fn render(check: &Check) -> String {
    let is_usable = check.steps.iter().all(|step| step.failure.is_none());
    let mut lines = vec![format!("{}: {}", check.route, if is_usable { "ok" } else { "fail" })];
    for step in &check.steps {
        let time = Duration::from_millis(step.ms);
        let words = match (&step.answer, &step.failure) {
            (Some(answer), _) => render_completion(answer),
            (None, Some(failure)) => failure.to_string(),
            (None, None) => String::new(),
        };
        let words = Escaped(words);
        lines.push(format!("  {:<8} {:>6.1} s  {words}", step.step, time.as_secs_f64()));
    }
    lines.extend(check.notes.iter().map(|note| format!("  note: {}", Escaped(note))));
    lines.join("\n")
}

fn render_completion(answer: &CompletionSummary) -> String {
    let count = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
    format!(
        "{}: `{}` ({}, {} deltas, {} tokens in, {} out)",
        answer.model,
        answer.text,
        answer.finish_reason,
        answer.pieces,
        count(answer.input_tokens),
        count(answer.output_tokens)
    )
}
