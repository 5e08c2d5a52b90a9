//! What a test may order to go wrong, and for which requests.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{call::Call, imprecise::Imprecise};

/// One thing that goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// Answer with this status, in the error shape of the service unless `body` is given.
    Status {
        /// The HTTP status.
        status: u16,
        /// Value of the `retry-after` header: seconds or an HTTP date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<String>,
        /// A body to send instead of the service's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Send the head and half of the true answer, then drop the connection.
    Cut,
    /// Answer truly, but this much later.
    Slow {
        /// Milliseconds to wait before the answer.
        ms: u64,
    },
    /// Answer 200 with bytes that are no JSON.
    Garbage,
    /// Hold the request until `POST /__release` or [`super::Handle::release`], then answer truly.
    Hang,
    /// Do what is asked, then hold the answer back until the release: for a client that goes away between
    /// the effect and its answer.
    HangAfter,
    /// A well-formed answer whose content violates the schema that was asked for.
    InvalidJsonContent,
    /// The true content inside a Markdown fence with a sentence before it.
    Fenced,
    /// A well-formed answer with exactly this content.
    Content {
        /// What the model says.
        text: String,
    },
    /// Exactly these answers, one for each request that fits, in order; then the rule is used up.
    /// A text is said as it is; an object with `tool_calls` (`name`, `arguments`, perhaps `id`)
    /// and perhaps `content` and `reasoning` asks for tools; any other document is said as its
    /// text.
    Script {
        /// The answers.
        contents: VecDeque<Value>,
    },
    /// A filter of Google keeps back what was made: with this reason, or without any words.
    Withheld {
        /// What Imagen says about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A stream with the oddities of real services.
    Stream(StreamQuirks),
    /// The true answer, distorted as real models do: some of the answers, by a seed.
    Imprecise(Imprecise),
}

/// A named oddity of a streamed answer, or of one that should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamVariant {
    /// Pieces of requests for tools have no number.
    MissingIndex,
    /// A request for a tool comes in one piece.
    WholeCall,
    /// Bytes are cut inside of characters, arguments inside of escapes.
    SplitUtf8,
    /// Pieces of several requests for tools take turns.
    Interleaved,
    /// Usage comes with the last choice.
    UsageLast,
    /// No usage at all.
    NoUsage,
    /// Empty lines before, and comments between the events.
    Comments,
    /// Lines end with CR LF.
    Crlf,
    /// No `[DONE]`.
    NoDone,
    /// An error event in the middle.
    ErrorInStream,
    /// The connection breaks in the middle.
    Cut,
    /// One document, as if nobody had asked for a stream.
    PlainJson,
    /// Reasoning comes first.
    Reasoning,
    /// The service stops in the middle, as DeepSeek does without a free machine.
    InsufficientSystemResource,
}

/// Oddities of a streamed answer that a client must survive; all are off by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct StreamQuirks {
    /// Lines end with CR LF.
    pub crlf: bool,
    /// Comment lines stand between the events.
    pub comments: bool,
    /// No `[DONE]` at the end.
    pub no_done: bool,
    /// No usage, though it was asked for.
    pub no_usage: bool,
    /// Usage in the last choice chunk instead of a chunk of its own.
    pub usage_in_last_choice: bool,
    /// After this many content chunks an error event ends the stream.
    pub error_after: Option<usize>,
    /// Pause between two chunks, in milliseconds.
    pub pause_ms: u64,
    /// A named oddity, beside the others.
    pub variant: Option<StreamVariant>,
}

impl StreamQuirks {
    /// One named oddity.
    pub fn of(variant: StreamVariant) -> Self {
        Self { variant: Some(variant), ..Self::default() }
    }

    /// What a fault orders for a stream; nothing if it is of another kind.
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

/// Which requests something applies to; what is not stated fits all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// The path, or its beginning followed by `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The model that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Text that occurs in the body as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_contains: Option<String>,
}

impl Pattern {
    /// Fits every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Fits requests to this path, or to paths that begin so if it ends with `*`.
    pub fn path(path: &str) -> Self {
        Self { path: Some(path.to_owned()), ..Self::default() }
    }

    /// Fits requests that ask this model.
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

/// A fault, the requests it hits and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Document")]
pub struct FaultRule {
    /// The requests it applies to.
    #[serde(flatten)]
    pub on: Pattern,
    /// What goes wrong.
    pub fault: Fault,
    /// How many requests it hits; without end if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// How many fitting requests it lets pass before.
    pub skip: u32,
}

/// The rule as it is sent; a misspelled key would make a test pass that tests nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    path: Option<String>,
    model: Option<String>,
    body_contains: Option<String>,
    fault: Fault,
    times: Option<u32>,
    #[serde(default)]
    skip: u32,
}

impl From<Document> for FaultRule {
    fn from(document: Document) -> Self {
        let Document { path, model, body_contains, fault, times, skip } = document;
        Self { on: Pattern { path, model, body_contains }, fault, times, skip }
    }
}

impl FaultRule {
    /// Applies `fault` to every request that fits, until the faults are cleared.
    pub fn new(on: Pattern, fault: Fault) -> Self {
        Self { on, fault, times: None, skip: 0 }
    }

    /// Hits this many requests only.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Lets this many fitting requests pass first.
    pub fn skip(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }
}

/// The standing orders, oldest first.
#[derive(Debug, Default)]
pub(super) struct Orders {
    rules: Mutex<Vec<FaultRule>>,
}

impl Orders {
    pub(super) fn add(&self, rule: FaultRule) {
        self.lock().push(rule);
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn list(&self) -> Vec<FaultRule> {
        self.lock().clone()
    }

    /// The fault for this request, counted as used. The oldest rule that fits decides alone.
    pub(super) fn take(&self, call: &Call) -> Option<Fault> {
        let mut rules = self.lock();
        let index = rules.iter().position(|rule| rule.on.fits(call))?;
        let rule = &mut rules[index];
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        if let Fault::Imprecise(mode) = &mut rule.fault {
            return mode.draw(call).map(Fault::Imprecise);
        }
        if let Fault::Script { contents } = &mut rule.fault {
            let next = contents.pop_front();
            let fault = next.map(|next| Fault::Script { contents: VecDeque::from([next]) });
            if contents.is_empty() {
                rules.remove(index);
            }
            return fault;
        }
        let fault = rule.fault.clone();
        if let Some(times) = &mut rule.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                rules.remove(index);
            }
        }
        Some(fault)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<FaultRule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Fault, FaultRule, Orders, Pattern};
    use crate::standin::call::Call;

    fn call(path: &str, model: &str) -> Call {
        Call::sample("POST", path, &json!({"model": model}))
    }

    #[test]
    fn rules_hit_what_they_name_as_often_as_they_say() {
        let orders = Orders::default();
        orders.add(FaultRule::new(Pattern::model("gpt-4o-mini"), Fault::Garbage).times(2).skip(1));
        let hits: Vec<bool> = ["gpt-4o-mini", "other", "gpt-4o-mini", "gpt-4o-mini", "gpt-4o-mini"]
            .iter()
            .map(|model| orders.take(&call("/v1/chat/completions", model)).is_some())
            .collect();
        assert_eq!(hits, [false, false, true, true, false]);
        assert!(orders.list().is_empty());
    }

    #[test]
    fn scripts_are_said_once() {
        let orders = Orders::default();
        let script = json!({"fault": {"kind": "script", "contents": ["a", {"b": 1}]}});
        orders.add(serde_json::from_value(script).unwrap());
        let next = || match orders.take(&call("/", "m")) {
            Some(Fault::Script { contents }) => contents.front().cloned(),
            _ => None,
        };
        assert_eq!([next(), next(), next()], [Some(json!("a")), Some(json!({"b": 1})), None]);
        assert!(orders.list().is_empty());
    }

    #[test]
    fn patterns_fit() {
        let call = call("/v1/chat/completions", "m");
        assert!(Pattern::any().fits(&call));
        assert!(Pattern::path("/v1/*").fits(&call));
        assert!(!Pattern::path("/v1").fits(&call));
        let body = |text: &str| Pattern { body_contains: Some(text.to_owned()), ..Pattern::any() };
        assert!(body("\"model\"").fits(&call));
        assert!(!body("\"image\"").fits(&call));
    }

    #[test]
    fn rules_are_read_from_json_and_misspellings_are_refused() {
        let document = json!({"path": "/v1/messages", "times": 2,
            "fault": {"kind": "status", "status": 429, "retry_after": "1"}});
        let rule: FaultRule = serde_json::from_value(document).unwrap();
        let fault = Fault::Status { status: 429, retry_after: Some("1".to_owned()), body: None };
        assert_eq!(rule, FaultRule::new(Pattern::path("/v1/messages"), fault).times(2));
        let misspelled = json!({"paht": "/v1/messages", "fault": {"kind": "cut"}});
        serde_json::from_value::<FaultRule>(misspelled).unwrap_err();
    }
}
