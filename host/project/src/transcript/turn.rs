//! The state of one model call in progress.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::id::RunId;
use wattle_graph::llm::{Completion, Part};

use crate::task_stream::{CompletionDelta, SeenContent};
use crate::transcript::calls::ToolCalls;
use crate::transcript::event::{ContentKind, TranscriptEvent};

/// Error of a tool call that the model did not repeat after a restart.
const DROPPED_BY_RESTART: &str = "the model restarted and did not request this call again";

/// Error of a tool call whose arguments do not parse. The completion contains these arguments as a
/// string.
const INVALID_JSON: &str = "the arguments of the call are not valid JSON";

/// The state of the transcript that a turn changes.
pub(super) struct TurnOutput<'a> {
    pub(super) run: &'a RunId,
    pub(super) texts: &'a mut u32,
    pub(super) calls: &'a mut ToolCalls,
    pub(super) said: &'a mut Vec<TranscriptEvent>,
}

/// A model call in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// The open text, with its kind and its id.
    text: Option<(ContentKind, String)>,
    /// Started tool calls by their position in the completion.
    calls: BTreeMap<u32, PartialToolCall>,
    /// Tool calls that a restart discarded. The next call of the same tool takes over the id of a
    /// discarded call.
    restarted: Vec<PartialToolCall>,
}

/// A tool call that has started.
#[derive(Clone, Debug)]
struct PartialToolCall {
    id: String,
    name: String,
    /// JSON text of the arguments so far.
    text: String,
}

impl Turn {
    /// Applies a delta.
    pub(super) fn apply_delta(&mut self, piece: CompletionDelta, speaker: &mut TurnOutput<'_>) {
        match piece {
            CompletionDelta::Text(text) => self.push_text(ContentKind::Text, &text, speaker),
            CompletionDelta::Reasoning(text) => {
                self.push_text(ContentKind::Reasoning, &text, speaker);
            }
            CompletionDelta::ToolCall { index, id, name, arguments } => {
                if let (None, Some(name)) = (self.calls.get(&index), name) {
                    self.start_call(index, id.as_deref(), &name, speaker);
                }
                self.append_arguments(index, &arguments, speaker.said);
            }
        }
    }

    /// Discards the text and the tool calls so far.
    pub(super) fn restart(&mut self, said: &mut Vec<TranscriptEvent>) {
        self.end_text(said);
        for begun in std::mem::take(&mut self.calls).into_values() {
            said.push(TranscriptEvent::ToolCallReset(begun.id.clone()));
            self.restarted.push(PartialToolCall { text: String::new(), ..begun });
        }
    }

    /// Applies the whole completion: emits the content that no delta contained, and completes the
    /// tool calls. Returns the ids of the calls in order.
    pub(super) fn finish(
        &mut self,
        completion: &Completion,
        told: &SeenContent,
        speaker: &mut TurnOutput<'_>,
    ) -> Vec<String> {
        self.end_text(speaker.said);
        let (mut index, mut made) = (0_u32, Vec::new());
        for part in &completion.parts {
            match part {
                Part::Text(text) if !told.text => self.push_text(ContentKind::Text, text, speaker),
                Part::Reasoning(text) if !told.reasoning => {
                    self.push_text(ContentKind::Reasoning, text, speaker);
                }
                Part::ToolCall(call) => {
                    if !self.calls.contains_key(&index) {
                        self.start_call(index, Some(&call.id), &call.name, speaker);
                    }
                    made.extend(self.complete_call(index, &call.id, &call.arguments, speaker));
                    index += 1;
                }
                _ => {}
            }
        }
        self.end_text(speaker.said);
        self.abort(DROPPED_BY_RESTART, speaker.said);
        made
    }

    /// Ends the open text, and ends all incomplete tool calls with the error `why`.
    pub(super) fn abort(&mut self, why: &str, said: &mut Vec<TranscriptEvent>) {
        self.end_text(said);
        let begun = std::mem::take(&mut self.calls).into_values();
        for PartialToolCall { id, name, text } in begun.chain(std::mem::take(&mut self.restarted)) {
            let (arguments, why) = (text.into(), why.to_owned());
            said.push(TranscriptEvent::ToolCallInvalid { id, name, arguments, why });
        }
    }

    fn push_text(&mut self, voice: ContentKind, text: &str, speaker: &mut TurnOutput<'_>) {
        if text.is_empty() {
            return;
        }
        let id = match self.text.take_if(|(open, _)| *open == voice) {
            Some((_, id)) => id,
            None => {
                self.end_text(speaker.said);
                *speaker.texts += 1;
                let id = format!("text-{}", speaker.texts);
                speaker.said.push(TranscriptEvent::TextStart(voice, id.clone()));
                id
            }
        };
        speaker.said.push(TranscriptEvent::TextDelta(voice, id.clone(), text.to_owned()));
        self.text = Some((voice, id));
    }

    fn end_text(&mut self, said: &mut Vec<TranscriptEvent>) {
        said.extend(self.text.take().map(|(voice, id)| TranscriptEvent::TextEnd(voice, id)));
    }

    fn start_call(
        &mut self,
        index: u32,
        id: Option<&str>,
        name: &str,
        speaker: &mut TurnOutput<'_>,
    ) {
        self.end_text(speaker.said);
        let void = self.restarted.iter().position(|begun| begun.name == name);
        let begun = match void {
            Some(place) => self.restarted.remove(place),
            None => {
                let id = speaker.calls.begin(speaker.run, id);
                let name = name.to_owned();
                speaker.said.push(TranscriptEvent::ToolCallStart {
                    id: id.clone(),
                    name: name.clone(),
                    is_inherited: false,
                });
                PartialToolCall { id, name, text: String::new() }
            }
        };
        self.calls.insert(index, begun);
    }

    fn append_arguments(&mut self, index: u32, arguments: &str, said: &mut Vec<TranscriptEvent>) {
        let Some(begun) = self.calls.get_mut(&index).filter(|_| !arguments.is_empty()) else {
            return;
        };
        begun.text.push_str(arguments);
        said.push(TranscriptEvent::ToolCallDelta {
            id: begun.id.clone(),
            text: arguments.to_owned(),
        });
    }

    fn complete_call(
        &mut self,
        index: u32,
        alias: &str,
        arguments: &Value,
        speaker: &mut TurnOutput<'_>,
    ) -> Option<String> {
        let PartialToolCall { id, name, .. } = self.calls.remove(&index)?;
        let arguments = arguments.clone();
        if arguments.is_string() {
            let (id, why) = (id.clone(), INVALID_JSON.to_owned());
            speaker.said.push(TranscriptEvent::ToolCallInvalid { id, name, arguments, why });
        } else {
            speaker.calls.complete(&id, alias);
            speaker.said.push(TranscriptEvent::ToolCallReady { id: id.clone(), name, arguments });
        }
        Some(id)
    }
}
