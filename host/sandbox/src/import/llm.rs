//! `wattle:plugin/llm`: language models.

pub(crate) mod stream;

use wasmtime::component::Resource;
use wattle_graph::failure::Failure;
use wattle_run::call::llm::{
    Completion, CompletionRequest, FinishReason, ResponseSchema, ToolChoice, ToolDefinition, Usage,
};

use self::stream::OpenStream;
use crate::bindings::wattle::plugin::{llm, types};
use crate::guest::Guest;
use crate::halt::Halt;
use crate::import::message::{from_part, into_message};
use crate::import::types::unknown;
use crate::json;

const COMPLETE: &str = "llm.complete";

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

    async fn stream(&mut self, request: llm::Request) -> Result<Resource<OpenStream>, Halt> {
        self.open_stream(into_request(request)?)
    }

    async fn generate_images(
        &mut self,
        _request: llm::ImageRequest,
    ) -> Result<Vec<llm::GeneratedImage>, Halt> {
        self.unsupported("llm.generate-images")
    }

    async fn route(&mut self, name: String) -> Result<llm::RouteInfo, Halt> {
        let info = self.gate("llm.route")?.route(&name)?;
        Ok(llm::RouteInfo {
            provider: info.provider,
            model: info.model,
            has_fallback: info.has_fallback,
            extra: Vec::new(),
        })
    }
}

fn into_request(request: llm::Request) -> Result<CompletionRequest, Failure> {
    let messages = request
        .messages
        .into_iter()
        .map(|message| into_message(message, COMPLETE))
        .collect::<Result<_, _>>()?;
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
