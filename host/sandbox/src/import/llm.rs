//! `wattle:plugin/llm`: language models.

pub(crate) mod stream;

use wasmtime::component::Resource;
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{
    Attempt, Completion, CompletionRequest, FinishReason, GeneratedImage, ImageRequest,
    ResponseSchema, ToolChoice, ToolDefinition, Usage,
};

use self::stream::StreamHandle;
use crate::bindings::wattle::plugin::{llm, types};
use crate::host_state::HostState;
use crate::import::message::{from_part, into_message};
use crate::import::types::unsupported_case;
use crate::import_error::ImportError;
use crate::json;

const COMPLETE: &str = CallKind::Complete.name();
const GENERATE_IMAGES: &str = CallKind::GenerateImages.name();

impl llm::Host for HostState {
    async fn complete(&mut self, request: llm::Request) -> Result<llm::Completion, ImportError> {
        let completion = self.call(into_request(request)?).await?;
        Ok(from_completion(completion))
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
        request: llm::Request,
    ) -> Result<Resource<StreamHandle>, ImportError> {
        self.open_stream(into_request(request)?)
    }

    async fn generate_images(
        &mut self,
        request: llm::ImageRequest,
    ) -> Result<Vec<llm::GeneratedImage>, ImportError> {
        let images = self.call(into_image_request(request)?).await?;
        Ok(images.into_iter().map(from_image).collect())
    }

    async fn route(&mut self, name: String) -> Result<llm::RouteInfo, ImportError> {
        let info = self.gate("llm.route")?.route(&name)?;
        Ok(llm::RouteInfo {
            provider: info.provider,
            model: info.model,
            has_fallback: info.has_fallback,
            extra: vec![("candidates".to_owned(), info.candidates.to_string())],
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
            json::parse_schema(&wanted.schema, COMPLETE, "response-schema.schema")
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
        tries: json::parse_extra(&request.extra, COMPLETE)?,
    })
}

fn into_image_request(request: llm::ImageRequest) -> Result<ImageRequest, Failure> {
    Ok(ImageRequest {
        route: request.route,
        prompt: request.prompt,
        count: request.count,
        aspect_ratio: request.aspect_ratio,
        tries: json::parse_extra(&request.extra, GENERATE_IMAGES)?,
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

fn into_tool(tool: llm::ToolDefinition) -> Result<ToolDefinition, Failure> {
    Ok(ToolDefinition {
        arguments_schema: json::parse_schema(
            &tool.arguments_schema,
            COMPLETE,
            "tools.arguments-schema",
        )?,
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

fn from_completion(completion: Completion) -> llm::Completion {
    llm::Completion {
        parts: completion.parts.into_iter().map(from_part).collect(),
        structured: completion.structured.as_ref().map(json::to_text),
        finish_reason: match completion.finish_reason {
            FinishReason::Stop => llm::FinishReason::Stop,
            FinishReason::Length => llm::FinishReason::Length,
            FinishReason::ToolCalls => llm::FinishReason::ToolCalls,
            FinishReason::ContentFilter => llm::FinishReason::ContentFilter,
            FinishReason::Other(reason) => llm::FinishReason::Other(reason),
        },
        usage: from_usage(&completion.usage),
        model: completion.model,
        extra: extra_fields(completion.id.as_ref(), &completion.attempts),
    }
}

/// Returns the extension fields of a completion (`extra`): the id of the message that the
/// completion becomes, and the models that were called.
fn extra_fields(id: Option<&String>, attempts: &[Attempt]) -> Vec<(String, String)> {
    let id = id.map(|id| ("id", serde_json::json!(id)));
    let attempts = (!attempts.is_empty()).then(|| ("attempts", serde_json::json!(attempts)));
    let told = id.into_iter().chain(attempts);
    told.map(|(key, value)| (key.to_owned(), value.to_string())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_contains_the_message_id_and_the_called_models() {
        let asked = |model: &str, error| Attempt {
            provider: "openai".to_owned(),
            model: model.to_owned(),
            tries: 1,
            error,
        };
        let failure = Failure::new("unavailable", "away").retryable();
        let id = "m".to_owned();
        let told = super::extra_fields(Some(&id), &[asked("a", Some(failure)), asked("b", None)]);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0], ("id".to_owned(), "\"m\"".to_owned()));
        assert_eq!(told[1].0, "attempts");
        let told: serde_json::Value = serde_json::from_str(&told[1].1).unwrap();
        assert_eq!(told[0]["error"]["code"], "unavailable");
        assert_eq!(told[1], serde_json::json!({ "provider": "openai", "model": "b", "tries": 1 }));
        assert!(super::extra_fields(None, &[]).is_empty());
    }
}
