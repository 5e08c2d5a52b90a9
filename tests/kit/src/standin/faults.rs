//! Faults that a test injects, and patterns of requests.

use std::collections::VecDeque;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{call::Call, imprecise::Imprecise};

/// A fault of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[serde(expecting = "an object with a `kind`")]
pub enum Fault {
    /// Responds with this status, in the error format of the service unless `body` is given.
    Status {
        /// The HTTP status.
        status: u16,
        /// Value of the `retry-after` header: seconds or an HTTP date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<String>,
        /// The body of the response; by default an error in the format of the service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Sends the head and half of the regular response, then closes the connection.
    #[serde(deserialize_with = "no_fields")]
    Cut,
    /// Sends the regular response after a delay.
    Slow {
        /// The delay, in milliseconds.
        ms: u64,
    },
    /// Responds with the status 200 and a body that is not JSON.
    #[serde(deserialize_with = "no_fields")]
    Garbage,
    /// Holds the request until `POST /__release` or [`super::Handle::release`], then sends the
    /// regular response.
    #[serde(deserialize_with = "no_fields")]
    Hang,
    /// Processes the request, then holds the response until the release. A client can disconnect
    /// between the effect and the response.
    #[serde(deserialize_with = "no_fields")]
    HangAfter,
    /// Sends a well-formed response whose content violates the requested schema.
    #[serde(deserialize_with = "no_fields")]
    InvalidJsonContent,
    /// Wraps the regular content in a Markdown code fence after a sentence.
    #[serde(deserialize_with = "no_fields")]
    Fenced,
    /// Sends a well-formed response with exactly this content.
    Content {
        /// The text of the model.
        text: String,
    },
    /// Sends exactly these completions, one for each matching request, in order. The rule is then
    /// removed. A string is the text. An object with `tool_calls` (`name`, `arguments`, optionally
    /// `id`) and optionally `content` and `reasoning` requests tools. Any other JSON value is sent
    /// as text.
    Script {
        /// The completions.
        contents: VecDeque<Value>,
    },
    /// A safety filter of Google withholds the output, with this reason or without one.
    Withheld {
        /// The reason that Imagen returns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Changes a stream in ways that real services do.
    Stream(StreamQuirks),
    /// Distorts some of the responses as real models do, selected by a seed.
    Imprecise(Imprecise),
}

/// A named peculiarity of a streamed response, or of a response that should be streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamVariant {
    /// Deltas of tool calls have no index.
    MissingIndex,
    /// A tool call is sent in one delta.
    WholeCall,
    /// Chunks end inside of UTF-8 characters, and deltas of arguments inside of JSON escapes.
    SplitUtf8,
    /// Deltas of several tool calls alternate.
    Interleaved,
    /// Usage is sent with the last choice.
    UsageLast,
    /// Usage is not sent.
    NoUsage,
    /// Empty lines precede the events, and comments are between them.
    Comments,
    /// Lines end with CR LF.
    Crlf,
    /// `[DONE]` is not sent.
    NoDone,
    /// An error event ends the stream in the middle.
    ErrorInStream,
    /// The connection closes in the middle.
    Cut,
    /// The response is one JSON body, although a stream was requested.
    PlainJson,
    /// Reasoning precedes the text.
    Reasoning,
    /// The service stops in the middle, as DeepSeek does when it has no capacity.
    InsufficientSystemResource,
}

/// Peculiarities of a streamed response that a client must tolerate. All are disabled by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct StreamQuirks {
    /// Lines end with CR LF.
    pub crlf: bool,
    /// Comment lines are between the events.
    pub comments: bool,
    /// The stream does not end with `[DONE]`.
    pub no_done: bool,
    /// Usage is not sent, although it was requested.
    pub no_usage: bool,
    /// Usage is sent in the chunk of the last choice, not in a separate chunk.
    pub usage_in_last_choice: bool,
    /// Number of content chunks after which an error event ends the stream.
    pub error_after: Option<usize>,
    /// Pause between two chunks, in milliseconds.
    pub pause_ms: u64,
    /// A named peculiarity in addition to the others.
    pub variant: Option<StreamVariant>,
}

impl StreamQuirks {
    /// Returns quirks with one named peculiarity.
    pub fn of(variant: StreamVariant) -> Self {
        Self { variant: Some(variant), ..Self::default() }
    }

    /// Returns the quirks of a [`Fault::Stream`]. Other faults have none.
    pub(super) fn in_force(fault: Option<&Fault>) -> Self {
        let Some(Fault::Stream(quirks)) = fault else { return Self::default() };
        let mut quirks = quirks.clone();
        match quirks.variant {
            Some(StreamVariant::UsageLast) => quirks.usage_in_last_choice = true,
            Some(StreamVariant::NoUsage) => quirks.no_usage = true,
            Some(StreamVariant::Comments) => quirks.comments = true,
            Some(StreamVariant::Crlf) => quirks.crlf = true,
            Some(StreamVariant::NoDone) => quirks.no_done = true,
            _ => {}
        }
        quirks
    }

    pub(super) fn is(&self, variant: StreamVariant) -> bool {
        self.variant == Some(variant)
    }
}

/// Selects requests. Unset fields match all requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// The path, or a prefix of it followed by `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Text that occurs in the raw body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_contains: Option<String>,
}

impl Pattern {
    /// Matches every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Matches requests to this path. A `*` at the end matches any suffix.
    pub fn path(path: &str) -> Self {
        Self { path: Some(path.to_owned()), ..Self::default() }
    }

    /// Matches requests for this model.
    pub fn model(model: &str) -> Self {
        Self { model: Some(model.to_owned()), ..Self::default() }
    }

    pub(super) fn fits(&self, call: &Call) -> bool {
        let path_fits = self.path.as_deref().is_none_or(|wanted| match wanted.strip_suffix('*') {
            Some(start) => call.path.starts_with(start),
            None => call.path == wanted,
        });
        let model_fits = self.model.is_none() || self.model == call.model;
        let body_fits = self.body_contains.as_deref().is_none_or(|text| {
            call.body.windows(text.len().max(1)).any(|window| window == text.as_bytes())
        });
        path_fits && model_fits && body_fits
    }
}

/// Reads a kind of fault that has no fields. Without it, Serde ignores the fields of such a kind.
fn no_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoFields {}

    NoFields::deserialize(deserializer).map(|NoFields {}| ())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_match_path_and_body() {
        let call = Call::sample("POST", "/v1/chat/completions", &json!({"model": "m"}));
        assert!(Pattern::any().fits(&call));
        assert!(Pattern::path("/v1/*").fits(&call));
        assert!(!Pattern::path("/v1").fits(&call));
        let body = |text: &str| Pattern { body_contains: Some(text.to_owned()), ..Pattern::any() };
        assert!(body("\"model\"").fits(&call));
        assert!(!body("\"image\"").fits(&call));
    }
}
