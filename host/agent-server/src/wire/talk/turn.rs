//! An answer while a model gives it.

use std::collections::BTreeSet;

use serde_json::Value;
use wattle_graph::event::Delta;

use super::answer::Answer;
use super::{Piece, Said};

/// An answer that is being given.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// The id of its first try.
    base: String,
    id: String,
    tries: u32,
    has_text: bool,
    has_reasoning: bool,
    /// Requests for tools that have begun.
    calls: BTreeSet<u32>,
}

impl Turn {
    pub(super) fn new(id: String) -> Self {
        Self {
            base: id.clone(),
            id,
            tries: 1,
            has_text: false,
            has_reasoning: false,
            calls: BTreeSet::new(),
        }
    }

    /// The id of the message.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// What came before is void. Clients add pieces to what they have, so what comes next is
    /// another message. Answers the id of the void one if anything of it was told.
    pub(super) fn restart(&mut self) -> Option<String> {
        if !self.has_text && !self.has_reasoning && self.calls.is_empty() {
            return None;
        }
        let void = self.id.clone();
        self.tries += 1;
        let id = format!("{}.{}", self.base, self.tries);
        *self = Self { id, tries: self.tries, ..Self::new(std::mem::take(&mut self.base)) };
        Some(void)
    }

    /// Takes pieces of the answer. Those that go on from each other become one.
    pub(super) fn hear(&mut self, deltas: &[Delta]) -> Vec<(String, Said)> {
        let mut said: Vec<(String, Said)> = Vec::new();
        for delta in deltas {
            let Some(piece) = self.piece(delta) else {
                said.extend(self.restart().map(|void| (void, Said::Void)));
                continue;
            };
            let last = said.last_mut().filter(|(id, _)| *id == self.id);
            match (last, piece) {
                (Some((_, Said::Piece(Piece::Text(text)))), Piece::Text(more))
                | (Some((_, Said::Piece(Piece::Reasoning(text)))), Piece::Reasoning(more)) => {
                    text.push_str(&more);
                }
                (
                    Some((_, Said::Piece(Piece::Call { index: before, arguments, .. }))),
                    Piece::Call { index, id: None, name: None, arguments: more },
                ) if *before == index => arguments.push_str(&more),
                (_, piece) => said.push((self.id.clone(), Said::Piece(piece))),
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
