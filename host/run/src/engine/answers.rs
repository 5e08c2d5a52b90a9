//! Matches the answers of a request to the pending interrupts of a thread.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::event::Answered;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Namespace, ThreadId};
use wattle_graph::interrupt::{AnswerError, Interrupt, match_answers};

use super::Engine;
use crate::blocking::{are_large_schemas, are_large_values, block_in_place_in_turn};
use crate::caller_id::CallerId;

impl Engine {
    /// Matches answers of a caller to the pending interrupts of a thread, and validates them.
    pub(super) async fn match_answers(
        &self,
        caller: CallerId,
        thread: &ThreadId,
        open: &[(Namespace, Interrupt)],
        answers: &BTreeMap<String, Value>,
    ) -> Result<Vec<Answered>, Failure> {
        let open: Vec<&Interrupt> = open.iter().map(|(_, question)| question).collect();
        let schemas = open.iter().filter_map(|question| question.asked.response_schema.as_ref());
        let is_long = are_large_values(answers.values()) || are_large_schemas(schemas);
        let cache = self.0.schemas.as_ref();
        let matched =
            block_in_place_in_turn(caller, is_long, || match_answers(&open, answers, cache));
        matched.await.map_err(|error| answer_failure(&error, thread))
    }
}

/// Removes the answers to interrupts that are not pending.
pub(in crate::engine) fn retain_pending(
    answers: &mut BTreeMap<String, Value>,
    open: &[(Namespace, Interrupt)],
) {
    answers.retain(|id, _| {
        open.iter().any(|(_, question)| question.asked.interrupt.as_str() == id.as_str())
    });
}

fn answer_failure(error: &AnswerError, thread: &ThreadId) -> Failure {
    if let AnswerError::Limit(exceeded) = error {
        return exceeded.to_failure();
    }
    let word = match error {
        AnswerError::SchemaMismatch { .. } | AnswerError::Ambiguous { .. } => code::INVALID,
        _ => code::CONFLICT,
    };
    Failure::new(word, format!("thread `{thread}`: {error}"))
}
