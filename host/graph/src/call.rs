//! Host calls in the event log: their kinds, and views of their requests and results as the types
//! of [`crate::llm`] and [`crate::tool`].

use serde::de::DeserializeOwned;
use serde_json::Value;
use strum::VariantArray;

use crate::event::{CallStarted, Called, Tokens};
use crate::id::CallKey;
use crate::llm::{Completion, CompletionRequest, GeneratedImage, ImageRequest};
use crate::tool::{ToolOutput, ToolRequest};

/// A host function that projections treat specially. The log holds the names of all functions; only
/// the functions of this enum have a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum CallKind {
    /// Requests a completion from a model.
    Complete,
    /// Requests a completion that the guest reads as a stream of deltas.
    Stream,
    /// Reads the next deltas of a streamed completion.
    StreamNext,
    /// Requests images from a model.
    GenerateImages,
    /// Calls a tool.
    CallTool,
    /// Sends an HTTP request.
    SendHttp,
    /// Runs one SQL statement.
    QuerySql,
    /// Runs SQL statements in one transaction.
    SqlTransaction,
}

impl CallKind {
    /// All kinds.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// Returns the name of the function in the log: interface and function.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "llm.complete",
            Self::Stream => "llm.stream",
            Self::StreamNext => "llm.stream.next",
            Self::GenerateImages => "llm.generate-images",
            Self::CallTool => "tools.call",
            Self::SendHttp => "http.send",
            Self::QuerySql => "sql.query",
            Self::SqlTransaction => "sql.transaction",
        }
    }

    /// Returns the kind of a function, given its name in the log.
    pub fn of(function: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == function)
    }

    /// Returns true if the result of the call is a [`Completion`].
    pub const fn is_completion(self) -> bool {
        matches!(self, Self::Complete | Self::Stream)
    }

    /// Returns true if the call requests a completion or images from a model.
    pub const fn is_model_call(self) -> bool {
        self.is_completion() || matches!(self, Self::GenerateImages)
    }
}

impl CallStarted {
    /// Returns the key of the call.
    pub fn key(&self) -> CallKey {
        CallKey::new(&self.task, &self.scope, self.call)
    }

    /// Returns the kind of the call.
    pub fn kind(&self) -> Option<CallKind> {
        CallKind::of(&self.function)
    }

    /// Returns true if the call requests text for a person. A completion that a tool requests is
    /// not text for a person, and structured output is not either.
    pub fn is_speech(&self) -> bool {
        self.kind().is_some_and(CallKind::is_completion)
            && !self.is_structured
            && self.scope.is_empty()
    }
}

impl Called {
    /// Returns the key of the call.
    pub fn key(&self) -> CallKey {
        CallKey::new(&self.task, &self.scope, self.call)
    }

    /// Returns the kind of the call.
    pub fn kind(&self) -> Option<CallKind> {
        CallKind::of(&self.function)
    }

    /// Returns the route of a model call. The route of a truncated request is known, too.
    pub fn route(&self) -> Option<&str> {
        self.kind().filter(|kind| kind.is_model_call())?;
        self.request.get("route")?.as_str()
    }

    /// Returns the model that a completion was requested from, and the tokens of the call. Returns
    /// `None` for a call that used no tokens, such as one with a reused result. The name is that of
    /// the route, and not one that a service reports, unless the log has only the latter.
    pub fn model_tokens(&self) -> Option<(&str, Tokens)> {
        self.kind().filter(|kind| kind.is_completion())?;
        let tokens = self.tokens.filter(|_| self.reused.is_none())?;
        let completion = self.answer()?;
        let attempts = completion.get("attempts").and_then(Value::as_array);
        let source = attempts.and_then(|attempts| attempts.last()).unwrap_or(completion);
        Some((source.get("model")?.as_str()?, tokens))
    }

    /// Returns the request for a completion. Returns `None` for a call of another kind, and for a
    /// request that the log holds only in part or that does not parse. All accessors of requests
    /// and results return `None` in the same cases. A request with a history has only the messages
    /// around it.
    pub fn completion_request(&self) -> Option<CompletionRequest> {
        self.deserialize_if(CallKind::is_completion, Some(&self.request))
    }

    /// Returns the completion of a model.
    pub fn completion(&self) -> Option<Completion> {
        self.deserialize_if(CallKind::is_completion, self.answer())
    }

    /// Returns the request for images.
    pub fn image_request(&self) -> Option<ImageRequest> {
        self.deserialize_if(|kind| kind == CallKind::GenerateImages, Some(&self.request))
    }

    /// Returns the images that a model generated.
    pub fn images(&self) -> Option<Vec<GeneratedImage>> {
        self.deserialize_if(|kind| kind == CallKind::GenerateImages, self.answer())
    }

    /// Returns the request of a tool call.
    pub fn tool_request(&self) -> Option<ToolRequest> {
        self.deserialize_if(|kind| kind == CallKind::CallTool, Some(&self.request))
    }

    /// Returns the output of a tool.
    pub fn tool_output(&self) -> Option<ToolOutput> {
        self.deserialize_if(|kind| kind == CallKind::CallTool, self.answer())
    }

    /// Returns the id of a tool call. The log truncates a large request to its first bytes, the
    /// field `head`. They contain the id, which is the second field of the request.
    pub fn tool_call_id(&self) -> Option<String> {
        if self.kind() != Some(CallKind::CallTool) {
            return None;
        }
        if let Some(id) = self.request.get("call_id") {
            return id.as_str().map(str::to_owned);
        }
        let head = self.request.get("head")?.as_str()?;
        let (_tool, rest) = first_text(head.strip_prefix(r#"{"tool":"#)?)?;
        first_text(rest.strip_prefix(r#","call_id":"#)?).map(|(id, _)| id)
    }

    fn answer(&self) -> Option<&Value> {
        self.result.as_ref().ok()
    }

    /// Deserializes a request or a result if the call is of the right kind.
    fn deserialize_if<T: DeserializeOwned>(
        &self,
        is_kind: impl Fn(CallKind) -> bool,
        document: Option<&Value>,
    ) -> Option<T> {
        self.kind().filter(|kind| is_kind(*kind))?;
        T::deserialize(document?).ok()
    }
}

/// Parses the JSON string at the start of `text`. Returns the string and the rest of `text`.
fn first_text(text: &str) -> Option<(String, &str)> {
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let first = texts.next()?.ok()?;
    let rest = text.get(texts.byte_offset()..)?;
    Some((first, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::{Digest, NodeName, TaskId};

    fn called(kind: CallKind, request: Value, answer: Value) -> Called {
        Called {
            task: TaskId::new("t").unwrap(),
            node: NodeName::new("n").unwrap(),
            scope: Vec::new(),
            call: 0,
            function: kind.name().to_owned(),
            digest: Digest::of(b""),
            request,
            result: Ok(answer),
            started_ms: 0,
            duration_us: 0,
            store_us: 0,
            summary: String::new(),
            tokens: None,
            reused: None,
            batch: 0,
        }
    }

    #[test]
    fn kinds_are_found_by_their_names() {
        let kinds = [
            (CallKind::Complete, "llm.complete", true, true),
            (CallKind::Stream, "llm.stream", true, true),
            (CallKind::StreamNext, "llm.stream.next", false, false),
            (CallKind::GenerateImages, "llm.generate-images", false, true),
            (CallKind::CallTool, "tools.call", false, false),
            (CallKind::SendHttp, "http.send", false, false),
            (CallKind::QuerySql, "sql.query", false, false),
            (CallKind::SqlTransaction, "sql.transaction", false, false),
        ];
        for (kind, name, is_completion, is_model_call) in kinds {
            assert_eq!((kind.name(), CallKind::of(name)), (name, Some(kind)));
            assert_eq!(kind.is_completion(), is_completion, "{name}");
            assert_eq!(kind.is_model_call(), is_model_call, "{name}");
        }
        assert_eq!(CallKind::of("llm.route"), None);
    }

    #[test]
    fn accessors_of_another_kind_of_call_return_none() {
        let request = json!({ "tool": "t/find", "call_id": "c1", "arguments": { "q": 1 } });
        let output = json!({ "content": [{ "text": "found" }] });
        let tool = called(CallKind::CallTool, request.clone(), output.clone());
        assert_eq!(tool.tool_request().unwrap().tool, "t/find");
        assert_eq!(tool.tool_output().unwrap().text().as_deref(), Some("found"));
        assert_eq!((tool.completion(), tool.images()), (None, None));
        let other = called(CallKind::SendHttp, request, output);
        assert_eq!((other.tool_request(), other.tool_output()), (None, None));
        assert_eq!(other.tool_call_id(), None);
    }

    #[test]
    fn tool_call_id_is_read_from_a_truncated_request() {
        let id = |request: Value| called(CallKind::CallTool, request, Value::Null).tool_call_id();
        assert_eq!(id(json!({ "call_id": "c1" })).as_deref(), Some("c1"));
        let head = r#"{"tool":"a\"b","call_id":"c\n2","arguments":{"a":"xxx"#;
        assert_eq!(id(json!({ "head": head, "bytes": 99_999 })).as_deref(), Some("c\n2"));
        assert_eq!(id(json!({ "head": r#"{"tool":"a"# })), None);
        assert_eq!(id(Value::Null), None);
    }
}
