//! A turn: one model call in progress.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::id::RunId;
use wattle_graph::llm::{Completion, Part};

use crate::conversation::{Piece, Told};
use crate::transcript::calls::Calls;
use crate::transcript::said::{Said, Voice};

/// Error of a tool call that the model did not repeat after a restart.
const WITHDRAWN: &str = "the model restarted and did not request this call again";

/// Error of a tool call whose arguments do not parse. The completion contains these arguments as a
/// string.
const NO_JSON: &str = "the arguments of the call are not valid JSON";

/// The state of the transcript that a turn changes.
pub(super) struct Speaker<'a> {
    pub(super) run: &'a RunId,
    pub(super) texts: &'a mut u32,
    pub(super) calls: &'a mut Calls,
    pub(super) said: &'a mut Vec<Said>,
}

/// A model call in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// The open text, with its kind and its id.
    text: Option<(Voice, String)>,
    /// Started tool calls by their position in the completion.
    calls: BTreeMap<u32, Begun>,
    /// Tool calls that a restart discarded. A later call of the same tool takes over the id of a
    /// discarded call.
    void: Vec<Begun>,
}

/// A tool call that has started.
#[derive(Clone, Debug)]
struct Begun {
    id: String,
    name: String,
    /// JSON text of the arguments so far.
    text: String,
}

impl Turn {
    /// Applies a delta.
    pub(super) fn hear(&mut self, piece: Piece, speaker: &mut Speaker<'_>) {
        match piece {
            Piece::Text(text) => self.speak(Voice::Words, &text, speaker),
            Piece::Reasoning(text) => self.speak(Voice::Thoughts, &text, speaker),
            Piece::Call { index, id, name, arguments } => {
                if let (None, Some(name)) = (self.calls.get(&index), name) {
                    self.begin(index, id.as_deref(), &name, speaker);
                }
                self.grow(index, &arguments, speaker.said);
            }
        }
    }

    /// Discards the text and the tool calls so far.
    pub(super) fn restart(&mut self, said: &mut Vec<Said>) {
        self.end_text(said);
        for begun in std::mem::take(&mut self.calls).into_values() {
            said.push(Said::CallVoid(begun.id.clone()));
            self.void.push(Begun { text: String::new(), ..begun });
        }
    }

    /// Applies the whole completion: emits the content that no delta had, and completes the tool
    /// calls. Returns the ids of the calls in order.
    pub(super) fn finish(
        &mut self,
        completion: &Completion,
        told: &Told,
        speaker: &mut Speaker<'_>,
    ) -> Vec<String> {
        self.end_text(speaker.said);
        let (mut index, mut made) = (0_u32, Vec::new());
        for part in &completion.parts {
            match part {
                Part::Text(text) if !told.text => self.speak(Voice::Words, text, speaker),
                Part::Reasoning(text) if !told.reasoning => {
                    self.speak(Voice::Thoughts, text, speaker);
                }
                Part::ToolCall(call) => {
                    if !self.calls.contains_key(&index) {
                        self.begin(index, Some(&call.id), &call.name, speaker);
                    }
                    made.extend(self.make(index, &call.id, &call.arguments, speaker));
                    index += 1;
                }
                _ => {}
            }
        }
        self.end_text(speaker.said);
        self.break_off(WITHDRAWN, speaker.said);
        made
    }

    /// Closes the open text, and all open tool calls with the error `why`.
    pub(super) fn break_off(&mut self, why: &str, said: &mut Vec<Said>) {
        self.end_text(said);
        let begun = std::mem::take(&mut self.calls).into_values();
        for Begun { id, name, text } in begun.chain(std::mem::take(&mut self.void)) {
            let (arguments, why) = (text.into(), why.to_owned());
            said.push(Said::CallBroken { id, name, arguments, why });
        }
    }

    fn speak(&mut self, voice: Voice, text: &str, speaker: &mut Speaker<'_>) {
        if text.is_empty() {
            return;
        }
        let id = match self.text.take_if(|(open, _)| *open == voice) {
            Some((_, id)) => id,
            None => {
                self.end_text(speaker.said);
                *speaker.texts += 1;
                let id = format!("text-{}", speaker.texts);
                speaker.said.push(Said::TextBegan(voice, id.clone()));
                id
            }
        };
        speaker.said.push(Said::Text(voice, id.clone(), text.to_owned()));
        self.text = Some((voice, id));
    }

    fn end_text(&mut self, said: &mut Vec<Said>) {
        said.extend(self.text.take().map(|(voice, id)| Said::TextEnded(voice, id)));
    }

    fn begin(&mut self, index: u32, id: Option<&str>, name: &str, speaker: &mut Speaker<'_>) {
        self.end_text(speaker.said);
        let void = self.void.iter().position(|begun| begun.name == name);
        let begun = match void {
            Some(place) => self.void.remove(place),
            None => {
                let id = speaker.calls.begin(speaker.run, id);
                let name = name.to_owned();
                speaker.said.push(Said::CallBegan { id: id.clone(), name: name.clone() });
                Begun { id, name, text: String::new() }
            }
        };
        self.calls.insert(index, begun);
    }

    fn grow(&mut self, index: u32, arguments: &str, said: &mut Vec<Said>) {
        let Some(begun) = self.calls.get_mut(&index).filter(|_| !arguments.is_empty()) else {
            return;
        };
        begun.text.push_str(arguments);
        said.push(Said::CallArguments { id: begun.id.clone(), text: arguments.to_owned() });
    }

    fn make(
        &mut self,
        index: u32,
        known_as: &str,
        arguments: &Value,
        speaker: &mut Speaker<'_>,
    ) -> Option<String> {
        let Begun { id, name, .. } = self.calls.remove(&index)?;
        let arguments = arguments.clone();
        if arguments.is_string() {
            let (id, why) = (id.clone(), NO_JSON.to_owned());
            speaker.said.push(Said::CallBroken { id, name, arguments, why });
        } else {
            speaker.calls.make(&id, known_as);
            speaker.said.push(Said::CallMade { id: id.clone(), name, arguments });
        }
        Some(id)
    }
}
