//! `wattle:plugin/llm`: language models.

use wasmtime::component::Resource;
use wattle_graph::failure::Failure;
use wattle_run::call::llm::{
    Completion, CompletionRequest, FinishReason, Image, ImageSource, Message, Part, ResponseSchema,
    Role, ToolCall, ToolChoice, ToolDefinition, ToolResult, Usage,
};

use crate::bindings::wattle::plugin::{llm, types};
use crate::guest::Guest;
use crate::halt::{Halt, Trapped};
use crate::import::types::{blob_ref, unknown};
use crate::json;

const COMPLETE: &str = "llm.complete";
const STREAM: &str = "llm.stream";

impl llm::Host for Guest {
    async fn complete(&mut self, request: llm::Request) -> Result<llm::Completion, Halt> {
        let answer = self.call(into_request(request)?).await?;
        Ok(from_completion(answer))
    }

    async fn complete_all(
        &mut self,
        requests: Vec<llm::Request>,
    ) -> wasmtime::Result<Vec<Result<llm::Completion, types::Failure>>> {
        let requests = requests.into_iter().map(into_request).collect();
        self.call_all(requests, from_completion).await
    }

    async fn stream(
        &mut self,
        _request: llm::Request,
    ) -> Result<Resource<llm::CompletionStream>, Halt> {
        self.unsupported(STREAM)
    }

    async fn generate_images(
        &mut self,
        _request: llm::ImageRequest,
    ) -> Result<Vec<llm::GeneratedImage>, Halt> {
        self.unsupported("llm.generate-images")
    }
}

/// Nobody can hold a stream as long as `stream` answers `unsupported`.
impl llm::HostCompletionStream for Guest {
    async fn next(
        &mut self,
        _stream: Resource<llm::CompletionStream>,
    ) -> Result<Vec<llm::StreamEvent>, Halt> {
        self.unsupported(STREAM)
    }

    async fn finish(
        &mut self,
        _stream: Resource<llm::CompletionStream>,
    ) -> Result<llm::Completion, Halt> {
        self.unsupported(STREAM)
    }

    async fn drop(&mut self, _stream: Resource<llm::CompletionStream>) -> wasmtime::Result<()> {
        Err(Trapped::Forbidden(STREAM).into())
    }
}

fn into_request(request: llm::Request) -> Result<CompletionRequest, Failure> {
    let messages = request.messages.into_iter().map(into_message).collect::<Result<_, _>>()?;
    let tools = request.tools.into_iter().map(into_tool).collect::<Result<_, _>>()?;
    let response_schema = request
        .response_schema
        .map(|wanted| {
            json::parse(&wanted.schema, COMPLETE, "response-schema.schema")
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
    })
}

fn into_tool(tool: llm::ToolDefinition) -> Result<ToolDefinition, Failure> {
    Ok(ToolDefinition {
        arguments_schema: json::parse(&tool.arguments_schema, COMPLETE, "tools.arguments-schema")?,
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
        llm::ToolChoice::Other(case) => return Err(unknown(COMPLETE, "tool-choice", &case)),
    })
}

fn into_message(message: types::Message) -> Result<Message, Failure> {
    let role = match message.role {
        types::Role::System => Role::System,
        types::Role::User => Role::User,
        types::Role::Assistant => Role::Assistant,
        types::Role::Tool => Role::Tool,
        types::Role::Other(name) => Role::Other(name),
    };
    let parts = message.parts.into_iter().map(into_part).collect::<Result<_, _>>()?;
    Ok(Message { role, parts })
}

fn into_part(part: types::Part) -> Result<Part, Failure> {
    Ok(match part {
        types::Part::Text(text) => Part::Text(text),
        types::Part::Image(image) => Part::Image(into_image(image)?),
        types::Part::ToolCall(call) => Part::ToolCall(ToolCall {
            arguments: json::parse(&call.arguments, COMPLETE, "messages.tool-call.arguments")?,
            id: call.id,
            name: call.name,
        }),
        types::Part::ToolResult(result) => Part::ToolResult(ToolResult {
            call_id: result.call_id,
            content: result.content,
            is_error: result.is_error,
        }),
        types::Part::Reasoning(text) => Part::Reasoning(text),
        types::Part::Other(text) => {
            Part::Other(json::parse(&text, COMPLETE, "messages.part.other")?)
        }
    })
}

fn into_image(image: types::Image) -> Result<Image, Failure> {
    let source = match image.source {
        types::ImageSource::Blob(text) => ImageSource::Blob(blob_ref(&text, COMPLETE)?),
        types::ImageSource::Url(url) => ImageSource::Url(url),
        types::ImageSource::Other(case) => return Err(unknown(COMPLETE, "image-source", &case)),
    };
    Ok(Image { source, media_type: image.media_type })
}

fn from_completion(completion: Completion) -> llm::Completion {
    llm::Completion {
        parts: completion.parts.into_iter().map(from_part).collect(),
        structured: completion.structured.as_ref().map(json::text),
        finish_reason: match completion.finish_reason {
            FinishReason::Stop => llm::FinishReason::Stop,
            FinishReason::Length => llm::FinishReason::Length,
            FinishReason::ToolCalls => llm::FinishReason::ToolCalls,
            FinishReason::ContentFilter => llm::FinishReason::ContentFilter,
            FinishReason::Other(reason) => llm::FinishReason::Other(reason),
        },
        usage: from_usage(&completion.usage),
        model: completion.model,
        extra: Vec::new(),
    }
}

fn from_usage(usage: &Usage) -> llm::Usage {
    llm::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        extra: Vec::new(),
    }
}

fn from_part(part: Part) -> types::Part {
    match part {
        Part::Text(text) => types::Part::Text(text),
        Part::Image(image) => types::Part::Image(types::Image {
            source: match image.source {
                ImageSource::Blob(blob) => types::ImageSource::Blob(blob.to_string()),
                ImageSource::Url(url) => types::ImageSource::Url(url),
            },
            media_type: image.media_type,
            extra: Vec::new(),
        }),
        Part::ToolCall(call) => types::Part::ToolCall(types::ToolCall {
            id: call.id,
            name: call.name,
            arguments: json::text(&call.arguments),
            extra: Vec::new(),
        }),
        Part::ToolResult(result) => types::Part::ToolResult(types::ToolResult {
            call_id: result.call_id,
            content: result.content,
            is_error: result.is_error,
            extra: Vec::new(),
        }),
        Part::Reasoning(text) => types::Part::Reasoning(text),
        Part::Other(value) => types::Part::Other(json::text(&value)),
    }
}
