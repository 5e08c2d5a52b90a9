//! An answer while a model gives it.

use std::collections::BTreeSet;

use serde_json::Value;
use wattle_graph::event::{CallStarted, Delta};

use super::answer::Answer;
use super::{Piece, Said};

/// An answer that is being given.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    started: CallStarted,
    /// How often the model answered anew.
    restarts: u32,
    has_text: bool,
    has_reasoning: bool,
    /// Requests for tools that have begun.
    calls: BTreeSet<u32>,
}

impl Turn {
    pub(super) fn new(started: CallStarted) -> Self {
        Self { started, restarts: 0, has_text: false, has_reasoning: false, calls: BTreeSet::new() }
    }

    /// The id of the message, which the host gives to the answer too.
    pub(super) fn id(&self) -> String {
        self.started.answer_id(self.restarts)
    }

    /// The call is made once more, so what came before is void. Answers the id of the void message if
    /// anything of it was told.
    pub(super) fn begin(&mut self, started: &CallStarted) -> Option<String> {
        let void = self.void();
        // Logs of older hosts do not count.
        let again = started.again.max(self.started.again + 1);
        *self = Self::new(CallStarted { again, ..started.clone() });
        void
    }

    /// The same if the model answers anew. Clients add pieces to what they have, so what comes next
    /// is another message.
    pub(super) fn restart(&mut self) -> Option<String> {
        let void = self.void();
        *self = Self { restarts: self.restarts + 1, ..Self::new(self.started.clone()) };
        void
    }

    fn void(&self) -> Option<String> {
        let was_told = self.has_text || self.has_reasoning || !self.calls.is_empty();
        was_told.then(|| self.id())
    }

    /// Takes pieces of the answer. Those that go on from each other become one.
    pub(super) fn hear(&mut self, deltas: &[Delta]) -> Vec<(String, Said)> {
        let mut said: Vec<(String, Said)> = Vec::new();
        for delta in deltas {
            let Some(piece) = self.piece(delta) else {
                said.extend(self.restart().map(|void| (void, Said::Void)));
                continue;
            };
            let id = self.id();
            let last = said.last_mut().filter(|(last, _)| *last == id);
            match (last, piece) {
                (Some((_, Said::Piece(Piece::Text(text)))), Piece::Text(more))
                | (Some((_, Said::Piece(Piece::Reasoning(text)))), Piece::Reasoning(more)) => {
                    text.push_str(&more);
                }
                (
                    Some((_, Said::Piece(Piece::Call { index: before, arguments, .. }))),
                    Piece::Call { index, id: None, name: None, arguments: more },
                ) if *before == index => arguments.push_str(&more),
                (_, piece) => said.push((id, Said::Piece(piece))),
            }
        }
        said
    }

    /// What the whole answer has and no piece has told.
    pub(super) fn rest(&mut self, answer: &Answer) -> Vec<Piece> {
        let mut rest = Vec::new();
        let (reasoning, text) = (answer.reasoning(), answer.text());
        if !self.has_reasoning && !reasoning.is_empty() {
            rest.push(Piece::Reasoning(reasoning));
        }
        if !self.has_text && !text.is_empty() {
            rest.push(Piece::Text(text));
        }
        for (index, call) in (0_u32..).zip(answer.calls()) {
            if !self.calls.insert(index) {
                continue;
            }
            let of = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
            let arguments = call.get("arguments").map(ToString::to_string).unwrap_or_default();
            rest.push(Piece::Call { index, id: of("id"), name: of("name"), arguments });
        }
        rest
    }

    /// `None` if the model answers anew.
    fn piece(&mut self, delta: &Delta) -> Option<Piece> {
        Some(match delta {
            Delta::Text { text } => {
                self.has_text |= !text.is_empty();
                Piece::Text(text.clone())
            }
            Delta::Reasoning { text } => {
                self.has_reasoning |= !text.is_empty();
                Piece::Reasoning(text.clone())
            }
            Delta::ToolCall { index, id, name, arguments } => {
                self.calls.insert(*index);
                let (index, arguments) = (*index, arguments.clone());
                Piece::Call { index, id: id.clone(), name: name.clone(), arguments }
            }
            _ => return None,
        })
    }
}
