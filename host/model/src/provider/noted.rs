//! What `genai` leaves out of a stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;
use tokio::sync::Notify;
use wattle_graph::llm::{FinishReason, Usage};

use crate::provider::idle::Idle;
use crate::provider::reply::Reply;

/// Listens to the events of a stream as they come over the wire.
#[derive(Debug, Default)]
pub(super) struct Noted {
    facts: Mutex<Facts>,
    /// Wakes up who waits for the stream once it carries nothing for too long.
    idle: Notify,
}

/// A blocked prompt.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    /// Tokens that were read, if the provider says so.
    input_tokens: Option<u64>,
}

#[derive(Debug, Default)]
struct Facts {
    events: usize,
    idle: Idle,
    /// The model, as the provider names it.
    model: Option<String>,
    /// The prompt was blocked.
    blocked: Option<Blocked>,
}

impl Noted {
    /// Whether any event came.
    pub(super) fn heard(&self) -> bool {
        self.facts().events > 0
    }

    /// A piece of the answer has come out of the stream.
    pub(super) fn carried(&self) {
        self.facts().idle.event(true);
    }

    /// Why the stream is to be given up, as soon as it is. Events that carry nothing do not all
    /// come out of the stream.
    pub(super) async fn exhausted(&self) -> String {
        loop {
            let woken = self.idle.notified();
            if let Some(reason) = self.facts().idle.excess() {
                return reason;
            }
            woken.await;
        }
    }

    /// The model that answered.
    pub(super) fn model(&self, asked: &str) -> String {
        self.facts().model.clone().unwrap_or_else(|| asked.to_owned())
    }

    /// The empty answer that stands for a prompt that Gemini's filter blocked.
    pub(super) fn blocked(&self, asked: &str) -> Option<Reply> {
        let Blocked { input_tokens } = self.facts().blocked?;
        Some(Reply {
            parts: Vec::new(),
            finish: FinishReason::ContentFilter,
            usage: Usage { input_tokens, ..Usage::default() },
            model: self.model(asked),
        })
    }

    /// No code that can panic runs under this lock.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Noted {
    fn on_frame(&self, _ctx: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut facts = self.facts();
        facts.events += 1;
        facts.idle.event(false);
        if facts.idle.excess().is_some() {
            self.idle.notify_one();
        }
        // Only the first event names the model or says that there will be no answer.
        if facts.model.is_some() {
            return;
        }
        let Some(event) = frame.json() else { return };
        let model = event.get("modelVersion").or_else(|| event.pointer("/message/model"));
        facts.model = model.and_then(Value::as_str).map(str::to_owned);
        if event.pointer("/promptFeedback/blockReason").is_some() {
            let tokens = event.pointer("/usageMetadata/promptTokenCount").and_then(Value::as_u64);
            facts.blocked = Some(Blocked { input_tokens: tokens });
        }
    }
}
