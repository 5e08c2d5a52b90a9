//! Matches the answers of a run to the pending interrupts of its thread, and checks that a run
//! without answers can continue.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::event::{Answered, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Namespace, ThreadId};
use wattle_graph::interrupt::{AnswerError, Interrupt, match_answers};
use wattle_graph::lineage::Lineage;

use super::request::answers_by_interrupt;
use super::{Engine, ThreadClaim};
use crate::blocking::{are_large_schemas, are_large_values, block_in_place_in_turn};
use crate::gate::check_decision;
use crate::hostcall::runs::RunService as _;
use crate::ports::store::{RunAnswers, RunKind, RunRecord, StaleAnswers, ThreadHead};

impl Engine {
    /// Matches answers to the pending interrupts of a claimed thread of `app`, and validates the
    /// answers. Returns the answers as events, each with the graph that raised the interrupt.
    pub(super) async fn match_answers(
        &self,
        slot: &ThreadClaim,
        app: &AppName,
        open: &[(Namespace, Interrupt)],
        answers: &BTreeMap<String, Value>,
    ) -> Result<Vec<(Namespace, EventKind)>, Failure> {
        let ThreadClaim { thread, request, .. } = slot;
        let questions: Vec<&Interrupt> = open.iter().map(|(_, question)| question).collect();
        let schemas =
            questions.iter().filter_map(|question| question.raised.response_schema.as_ref());
        let is_long = are_large_values(answers.values()) || are_large_schemas(schemas);
        let cache = self.0.schemas.as_ref();
        let matched = block_in_place_in_turn(request.caller(app), is_long, || {
            let matched = match_answers(&questions, answers, cache)
                .map_err(|error| answer_failure(&error, thread))?;
            check_decisions(&questions, &matched, thread)?;
            Ok::<_, Failure>(matched)
        });
        let matched = matched.await?;
        let placed = matched.into_iter().filter_map(|answered| {
            let is_answered =
                |question: &Interrupt| question.raised.interrupt == answered.interrupt;
            let (graph, _) = open.iter().find(|(_, question)| is_answered(question))?;
            let answered = Answered { principal: request.principal.clone(), ..answered };
            Some((graph.clone(), EventKind::Answered(answered)))
        });
        Ok(placed.collect())
    }

    /// Replaces the answers of a run by answers that name interrupt ids, if the answers match the
    /// pending interrupts. A client answers the interrupts that are pending at its request; other
    /// interrupts may be pending when the run starts.
    pub(super) async fn resolve_answers(&self, record: &mut RunRecord) {
        let RunRecord { thread, spec, .. } = record;
        let Some(spec) = spec.as_deref_mut() else { return };
        let stale = spec.stale_answers;
        let (RunKind::Answer { answer } | RunKind::Command { answer: Some(answer), .. }) =
            &mut spec.kind
        else {
            return;
        };
        // If the answers do not match, the start of the run reports the reason. If no interrupt is
        // pending, the answers may be for interrupts that a pending run will raise.
        if let Ok(answers) = self.answers_by_id(thread, answer, stale).await
            && !answers.is_empty()
        {
            *answer = RunAnswers::ById(answers);
        }
    }

    /// Returns the answers by interrupt id. Answers without ids are for the interrupts that are
    /// pending now.
    pub(super) async fn answers_by_id(
        &self,
        thread: &ThreadId,
        answer: &RunAnswers,
        stale: StaleAnswers,
    ) -> Result<BTreeMap<String, Value>, Failure> {
        match answer {
            RunAnswers::ById(answers) => Ok(answers.clone()),
            RunAnswers::Matched(value) => {
                let view = self.thread(thread).await?;
                let open = view.map(|view| view.interrupts).unwrap_or_default();
                answers_by_interrupt(&open, value, stale)
            }
        }
    }
}

/// Removes the answers to interrupts that are not pending.
pub(in crate::engine) fn retain_pending(
    answers: &mut BTreeMap<String, Value>,
    open: &[(Namespace, Interrupt)],
) {
    answers.retain(|id, _| {
        open.iter().any(|(_, question)| question.raised.interrupt.as_str() == id.as_str())
    });
}

/// Checks that a thread can continue without answers: no interrupt is pending, and a node is
/// triggered.
pub(super) fn check_can_continue(
    head: &ThreadHead,
    lineage: &Lineage,
    open: &[(Namespace, Interrupt)],
) -> Result<(), Failure> {
    if let Some((_, question)) = open.first() {
        return Err(Failure::new(
            code::INVALID,
            format!(
                "thread `{}` has {} pending interrupt(s), the first with the id `{}`; give answers \
                 by interrupt id",
                head.record.id,
                open.len(),
                question.raised.interrupt
            ),
        ));
    }
    if lineage.checkpoint.meta.next.is_empty() {
        return Err(Failure::new(
            code::CONFLICT,
            format!("thread `{}` has reached its end, nothing is left to run", head.record.id),
        ));
    }
    Ok(())
}

/// Checks the outputs that answers give for calls in doubt.
fn check_decisions(
    questions: &[&Interrupt],
    matched: &[Answered],
    thread: &ThreadId,
) -> Result<(), Failure> {
    for Answered { interrupt, answer, .. } in matched {
        let question = questions.iter().find(|question| question.raised.interrupt == *interrupt);
        let Some(question) = question else { continue };
        check_decision(&question.raised, answer).map_err(|failure| Failure {
            message: format!(
                "thread `{thread}`: the answer to interrupt `{interrupt}`: {}",
                failure.message
            ),
            ..failure
        })?;
    }
    Ok(())
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
