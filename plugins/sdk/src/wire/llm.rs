//! Calls of `llm`.

use crate::bindings::imports::wattle::plugin::llm as raw;
use crate::blob::BlobRef;
use crate::failure::Failure;
use crate::llm::{
    Completion, FinishReason, GeneratedImage, ImageRequest, Request, RouteInfo, StreamEvent,
    ToolChoice, Usage,
};
use crate::wire::convert::{extra, raw_extra, result, value};

pub(crate) fn complete(request: Request) -> Result<Completion, Failure> {
    result(raw::complete(&request.into()))
}

pub(crate) fn complete_all(requests: Vec<Request>) -> Vec<Result<Completion, Failure>> {
    let requests: Vec<raw::Request> = requests.into_iter().map(Into::into).collect();
    raw::complete_all(&requests).into_iter().map(result).collect()
}

/// A streamed completion of the host.
#[derive(Debug)]
pub(crate) struct Stream {
    resource: raw::CompletionStream,
}

pub(crate) fn stream(request: Request) -> Result<Stream, Failure> {
    Ok(Stream { resource: raw::stream(&request.into())? })
}

impl Stream {
    pub(crate) fn next(&mut self) -> Result<Vec<StreamEvent>, Failure> {
        Ok(self.resource.next()?.into_iter().map(Into::into).collect())
    }

    pub(crate) fn finish(&mut self) -> Result<Completion, Failure> {
        result(self.resource.finish())
    }
}

pub(crate) fn route(name: &str) -> Result<RouteInfo, Failure> {
    let info = raw::route(name)?;
    Ok(RouteInfo {
        provider: info.provider,
        model: info.model,
        has_fallback: info.has_fallback,
        extra: extra(info.extra),
    })
}

pub(crate) fn generate_images(request: ImageRequest) -> Result<Vec<GeneratedImage>, Failure> {
    let request = raw::ImageRequest {
        route: request.route,
        prompt: request.prompt,
        count: request.count,
        aspect_ratio: request.aspect_ratio,
        extra: raw_extra(request.extra),
    };
    let image = |image: raw::GeneratedImage| GeneratedImage {
        blob: BlobRef(image.blob),
        media_type: image.media_type,
        extra: extra(image.extra),
    };
    Ok(raw::generate_images(&request)?.into_iter().map(image).collect())
}

impl From<Request> for raw::Request {
    fn from(request: Request) -> Self {
        let tool = |tool: crate::llm::ToolDefinition| raw::ToolDefinition {
            name: tool.name,
            description: tool.description,
            arguments_schema: tool.arguments_schema.to_string(),
            extra: raw_extra(tool.extra),
        };
        let schema = |schema: crate::llm::ResponseSchema| raw::ResponseSchema {
            name: schema.name,
            schema: schema.schema.to_string(),
        };
        Self {
            route: request.route,
            messages: request.messages.into_iter().map(Into::into).collect(),
            tools: request.tools.into_iter().map(tool).collect(),
            tool_choice: request.tool_choice.into(),
            response_schema: request.response_schema.map(schema),
            temperature: request.temperature,
            max_output_tokens: request.max_output_tokens,
            seed: request.seed,
            stop: request.stop,
            extra: raw_extra(request.extra),
        }
    }
}

impl From<ToolChoice> for raw::ToolChoice {
    fn from(choice: ToolChoice) -> Self {
        match choice {
            ToolChoice::Auto => Self::Auto,
            ToolChoice::None => Self::None,
            ToolChoice::Required => Self::Required,
            ToolChoice::Tool(name) => Self::Tool(name),
            ToolChoice::Other(name) => Self::Other(name),
        }
    }
}

impl From<raw::Completion> for Completion {
    fn from(completion: raw::Completion) -> Self {
        Self {
            parts: completion.parts.into_iter().map(Into::into).collect(),
            structured: completion.structured.as_deref().map(value),
            finish_reason: completion.finish_reason.into(),
            usage: completion.usage.into(),
            model: completion.model,
            extra: extra(completion.extra),
        }
    }
}

impl From<raw::FinishReason> for FinishReason {
    fn from(reason: raw::FinishReason) -> Self {
        match reason {
            raw::FinishReason::Stop => Self::Stop,
            raw::FinishReason::Length => Self::Length,
            raw::FinishReason::ToolCalls => Self::ToolCalls,
            raw::FinishReason::ContentFilter => Self::ContentFilter,
            raw::FinishReason::Other(name) => Self::Other(name),
        }
    }
}

impl From<raw::Usage> for Usage {
    fn from(usage: raw::Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            extra: extra(usage.extra),
        }
    }
}

impl From<raw::StreamEvent> for StreamEvent {
    fn from(event: raw::StreamEvent) -> Self {
        match event {
            raw::StreamEvent::Text(text) => Self::Text(text),
            raw::StreamEvent::Reasoning(text) => Self::Reasoning(text),
            raw::StreamEvent::ToolCallDelta((index, name, arguments)) => {
                Self::ToolCallDelta { index, name, arguments }
            }
            raw::StreamEvent::Other(text) => match value(&text) {
                event if event["kind"] == "restart" => Self::Restart,
                event => Self::Other(event),
            },
        }
    }
}
