//! `wattle:plugin/llm`: language models.

mod stream;

use wasmtime::component::Resource;
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{
    CompletionRequest, GeneratedImage, ImageRequest, ResponseSchema, ToolChoice, ToolDefinition,
};
use wattle_run::hostcall::llm::ROUTE;

use crate::bindings::wattle::plugin::{llm, types};
use crate::handles::StreamHandle;
use crate::host_state::HostState;
use crate::import::completion::from_completion;
use crate::import::message::into_message;
use crate::import::types::unsupported_case;
use crate::import_error::ImportError;
use crate::json::{self, CallJson};

const COMPLETE: &str = CallKind::Complete.name();
const GENERATE_IMAGES: &str = CallKind::GenerateImages.name();

impl llm::Host for HostState {
    async fn complete(&mut self, request: llm::Request) -> Result<llm::Completion, ImportError> {
        let completion =
            self.call(json::of_call(COMPLETE, |json| into_request(request, json))?).await?;
        Ok(from_completion(completion))
    }

    async fn complete_all(
        &mut self,
        requests: Vec<llm::Request>,
    ) -> wasmtime::Result<Vec<Result<llm::Completion, types::Failure>>> {
        let requests = json::of_call(COMPLETE, |json| {
            requests.into_iter().map(|request| into_request(request, json)).collect()
        });
        self.call_all(requests, from_completion).await
    }

    async fn stream(
        &mut self,
        request: llm::Request,
    ) -> Result<Resource<StreamHandle>, ImportError> {
        self.open_stream(json::of_call(COMPLETE, |json| into_request(request, json))?)
    }

    async fn generate_images(
        &mut self,
        request: llm::ImageRequest,
    ) -> Result<Vec<llm::GeneratedImage>, ImportError> {
        let images = self
            .call(json::of_call(GENERATE_IMAGES, |json| into_image_request(request, json))?)
            .await?;
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

fn into_request(request: llm::Request, json: CallJson<'_>) -> Result<CompletionRequest, Failure> {
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
    Ok(CompletionRequest {
        route: request.route,
        messages,
        tools,
        tool_choice: into_choice(request.tool_choice)?,
        response_schema,
        temperature: request.temperature,
        max_output_tokens: request.max_output_tokens,
        seed: request.seed,
        stop: request.stop,
        tries: json.parse_extra(&request.extra)?,
    })
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

fn into_choice(choice: llm::ToolChoice) -> Result<ToolChoice, Failure> {
    Ok(match choice {
        llm::ToolChoice::Auto => ToolChoice::Auto,
        llm::ToolChoice::None => ToolChoice::None,
        llm::ToolChoice::Required => ToolChoice::Required,
        llm::ToolChoice::Tool(name) => ToolChoice::Tool(name),
        llm::ToolChoice::Other(case) => {
            return Err(unsupported_case(COMPLETE, "tool-choice", &case));
        }
    })
}
