//! `wattle:plugin/llm`: language models.

mod stream;

use std::convert::identity;
use std::sync::Arc;

use serde::Deserialize;
use wasmtime::component::Resource;
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{
    CompletionRequest, GeneratedImage, History, HistoryReference, ImageRequest, ResponseSchema,
    ToolChoice, ToolDefinition, Tries,
};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;
use wattle_run::hostcall::llm::ROUTE;
use wattle_run::limit;

use crate::bindings::wattle::plugin::{llm, types};
use crate::handles::StreamHandle;
use crate::host_state::HostState;
use crate::import::llm::stream::STREAM;
use crate::import::message::{into_message, part_json_bytes};
use crate::import::types::unsupported_case;
use crate::import_error::{ImportError, TrapReason};
use crate::json::{CallJson, extra_bytes};

const COMPLETE: &str = CallKind::Complete.name();
const GENERATE_IMAGES: &str = CallKind::GenerateImages.name();

impl llm::Host for HostState {
    async fn complete(&mut self, request: llm::Request) -> Result<llm::Completion, ImportError> {
        let request = self.convert_request(COMPLETE, request).await?;
        let (gate, history) = (self.gate(COMPLETE)?, request.history.clone());
        let completion = self.call(request).await?;
        Ok(self.convert_completion(&gate, completion, history.as_deref()).await)
    }

    async fn complete_all(
        &mut self,
        requests: Vec<llm::Request>,
    ) -> wasmtime::Result<Vec<Result<llm::Completion, types::Failure>>> {
        let (gate, bytes) = (self.gate(COMPLETE)?, requests.iter().map(json_bytes).sum());
        let converted = self.convert_all(&gate, COMPLETE, bytes, requests, into_request).await;
        let mut requests = Vec::with_capacity(converted.len());
        for request in converted {
            requests.push(match request {
                Ok((request, history)) => {
                    let resolved = self.resolve_history(&gate, request, history).await;
                    resolved.map_err(TrapReason::Unwind)?
                }
                Err(failure) => Err(failure),
            });
        }
        let history = |request: &Result<CompletionRequest, Failure>| -> Option<Arc<History>> {
            request.as_ref().ok()?.history.clone()
        };
        let histories: Vec<_> = requests.iter().map(history).collect();
        let completions = self.call_all(requests, identity).await?;
        let mut converted = Vec::with_capacity(completions.len());
        for (completion, history) in completions.into_iter().zip(&histories) {
            converted.push(match completion {
                Ok(completion) => {
                    Ok(self.convert_completion(&gate, completion, history.as_deref()).await)
                }
                Err(failure) => Err(failure),
            });
        }
        Ok(converted)
    }

    async fn stream(
        &mut self,
        request: llm::Request,
    ) -> Result<Resource<StreamHandle>, ImportError> {
        let request = self.convert_request(STREAM, request).await?;
        self.open_stream(request)
    }

    async fn generate_images(
        &mut self,
        request: llm::ImageRequest,
    ) -> Result<Vec<llm::GeneratedImage>, ImportError> {
        let (gate, bytes) = (self.gate(GENERATE_IMAGES)?, extra_bytes(&request.extra));
        let convert = |json: CallJson<'_>| into_image_request(request, json);
        let request = self.convert(&gate, GENERATE_IMAGES, bytes, convert).await?;
        let images = self.call(request).await?;
        Ok(images.into_iter().map(from_image).collect())
    }

    async fn route(&mut self, name: String) -> Result<llm::RouteInfo, ImportError> {
        let info = self.gate(ROUTE)?.route(&name)?;
        Ok(llm::RouteInfo {
            provider: info.provider,
            model: info.model,
            has_fallback: info.has_fallback,
            extra: vec![("candidates".to_owned(), info.candidates.to_string())],
        })
    }
}

impl HostState {
    async fn convert_request(
        &mut self,
        function: &'static str,
        request: llm::Request,
    ) -> Result<CompletionRequest, ImportError> {
        let (gate, bytes) = (self.gate(function)?, json_bytes(&request));
        let convert = |json: CallJson<'_>| into_request(request, json);
        let (request, history) = self.convert(&gate, function, bytes, convert).await?;
        let resolved = self.resolve_history(&gate, request, history).await?;
        Ok(resolved.map_err(|failure| gate.refuse(failure))?)
    }

    /// Adds the history that a guest refers to, if it refers to one. Copying and indexing a long
    /// conversation waits for a turn of the caller.
    async fn resolve_history(
        &mut self,
        gate: &Gate,
        request: CompletionRequest,
        reference: Option<HistoryReference>,
    ) -> Result<Result<CompletionRequest, Failure>, Unwind> {
        let Some(reference) = reference else { return Ok(Ok(request)) };
        let is_long = gate.is_long_conversation(&reference.channel);
        let work = || gate.with_history(request, reference);
        if is_long { self.parse_in_turn(gate, work).await } else { work() }
    }
}

/// The extension fields of a request (`extra`).
#[derive(Deserialize)]
struct RequestExtra {
    #[serde(flatten)]
    tries: Tries,
    history: Option<HistoryReference>,
}

/// Returns the length of the JSON texts of a request, in bytes.
fn json_bytes(request: &llm::Request) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let parts: usize = parts.map(part_json_bytes).sum();
    let tools: usize = request.tools.iter().map(|tool| tool.arguments_schema.len()).sum();
    let schema = request.response_schema.as_ref().map_or(0, |wanted| wanted.schema.len());
    parts + tools + schema + extra_bytes(&request.extra)
}

/// Converts a request of a guest. Returns the history that it refers to apart, because the gate has
/// the conversation.
fn into_request(
    request: llm::Request,
    json: CallJson<'_>,
) -> Result<(CompletionRequest, Option<HistoryReference>), Failure> {
    let messages = request
        .messages
        .into_iter()
        .map(|message| into_message(message, json))
        .collect::<Result<_, _>>()?;
    let tools =
        request.tools.into_iter().map(|tool| into_tool(tool, json)).collect::<Result<_, _>>()?;
    let response_schema = request
        .response_schema
        .map(|wanted| {
            json.parse_schema(&wanted.schema, "response-schema.schema")
                .map(|schema| ResponseSchema { name: wanted.name, schema })
        })
        .transpose()?;
    let tool_choice = into_choice(request.tool_choice, json.function())?;
    // The messages that continue a conversation can have the size of several texts of a call.
    let RequestExtra { tries, history } =
        json.parse_extra_within(&request.extra, limit::RUN_JSON_BYTES)?;
    let request = CompletionRequest {
        route: request.route,
        history: None,
        messages,
        tools,
        tool_choice,
        response_schema,
        temperature: request.temperature,
        max_output_tokens: request.max_output_tokens,
        seed: request.seed,
        stop: request.stop,
        tries,
    };
    Ok((request, history))
}

fn into_image_request(
    request: llm::ImageRequest,
    json: CallJson<'_>,
) -> Result<ImageRequest, Failure> {
    Ok(ImageRequest {
        route: request.route,
        prompt: request.prompt,
        count: request.count,
        aspect_ratio: request.aspect_ratio,
        tries: json.parse_extra(&request.extra)?,
    })
}

fn from_image(image: GeneratedImage) -> llm::GeneratedImage {
    let fields = [("provider", image.provider), ("model", image.model), ("link", image.link)];
    let fields = fields.map(|(key, value)| (key.to_owned(), serde_json::json!(value).to_string()));
    llm::GeneratedImage {
        blob: image.blob.to_string(),
        media_type: image.media_type,
        extra: fields.into(),
    }
}

fn into_tool(tool: llm::ToolDefinition, json: CallJson<'_>) -> Result<ToolDefinition, Failure> {
    Ok(ToolDefinition {
        arguments_schema: json.parse_schema(&tool.arguments_schema, "tools.arguments-schema")?,
        name: tool.name,
        description: tool.description,
    })
}

fn into_choice(choice: llm::ToolChoice, function: &str) -> Result<ToolChoice, Failure> {
    Ok(match choice {
        llm::ToolChoice::Auto => ToolChoice::Auto,
        llm::ToolChoice::None => ToolChoice::None,
        llm::ToolChoice::Required => ToolChoice::Required,
        llm::ToolChoice::Tool(name) => ToolChoice::Tool(name),
        llm::ToolChoice::Other(case) => {
            return Err(unsupported_case(function, "tool-choice", &case));
        }
    })
}
