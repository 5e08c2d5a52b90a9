//! Interrupts, and the matching of answers to them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::event::{Answered, InterruptRaised};
use crate::id::{InterruptId, RunId};
use crate::limit::Exceeded;
use crate::schema::{Formats, Misfit, SchemaError, SchemaSource, StepBudget};

/// An interrupt that a task has raised.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// Payload of the `asked` event.
    pub raised: InterruptRaised,
    /// Time of the `asked` event, in milliseconds since 1970.
    pub raised_ms: i64,
    /// Sequence number of the `asked` event.
    pub raised_seq: u64,
    /// The run in which the interrupt was raised.
    pub run: RunId,
    /// The answer; `None` while the interrupt has no answer.
    pub answer: Option<Value>,
}

/// Error of matching answers to interrupts. None of the answers has been applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The request contains no answer.
    #[error("the request contains no answer; send the id of an interrupt and its answer")]
    Empty,
    /// No interrupt is pending.
    #[error("the thread has no pending interrupt; start a run with an input instead")]
    NonePending,
    /// The named interrupt is not pending.
    #[error("interrupt `{id}` is not pending: it has an answer, or this thread never raised it")]
    NotPending {
        /// The id in the request.
        id: String,
    },
    /// An answer without an interrupt id, while several interrupts are pending.
    #[error(
        "{} interrupts are pending, so the answer must name one of them: {}",
        pending.len(), ids(pending)
    )]
    Ambiguous {
        /// The pending interrupts.
        pending: Vec<InterruptId>,
    },
    /// The request answers one interrupt twice, once with and once without its id.
    #[error("interrupt `{id}` has two answers in one request")]
    Duplicate {
        /// The interrupt.
        id: InterruptId,
    },
    /// The answer does not match the response schema. The interrupt stays pending.
    #[error("the answer to interrupt `{id}` does not match the response schema: {message}")]
    SchemaMismatch {
        /// The interrupt.
        id: InterruptId,
        /// Description of the violation.
        message: String,
    },
    /// The validation of the answer exceeds a limit. The interrupt stays pending.
    #[error("{0}")]
    Limit(Exceeded),
}

fn ids(open: &[InterruptId]) -> String {
    let ids: Vec<String> = open.iter().map(|id| format!("`{id}`")).collect();
    ids.join(", ")
}

/// The answers of an object whose keys name interrupts.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedAnswers {
    /// The answers to pending interrupts, by interrupt id.
    pub pending: BTreeMap<String, Value>,
    /// The keys that are not the id of a pending interrupt.
    pub stale: Vec<String>,
}

/// Returns the answers of an object whose keys name interrupts. Any other value is itself an answer
/// and yields `None`.
///
/// An object names interrupts if each of its keys has the form of an interrupt id, or if one of its
/// keys is the id of a pending interrupt. An answer to an interrupt that is no longer pending
/// therefore never becomes the answer to another interrupt.
pub fn named_answers(value: &Value, is_open: impl Fn(&str) -> bool) -> Option<NamedAnswers> {
    let fields = value.as_object().filter(|fields| !fields.is_empty())?;
    let (open, stale): (Vec<&String>, Vec<&String>) = fields.keys().partition(|key| is_open(key));
    let names_interrupts = !open.is_empty() || stale.iter().all(|key| InterruptId::has_form(key));
    names_interrupts.then(|| NamedAnswers {
        pending: open.into_iter().map(|id| (id.clone(), fields[id].clone())).collect(),
        stale: stale.into_iter().cloned().collect(),
    })
}

/// Matches each answer to a pending interrupt. The empty key refers to the only pending interrupt,
/// unless its value [names interrupts](named_answers). Interrupts without an answer stay pending.
/// Each answer is validated against the response schema of its interrupt, which `schemas` compiles.
///
/// # Errors
///
/// [`AnswerError`] if one of the answers is not accepted. The caller must then apply none of them.
pub fn match_answers(
    open: &[&Interrupt],
    answers: &BTreeMap<String, Value>,
    schemas: &dyn SchemaSource,
) -> Result<Vec<Answered>, AnswerError> {
    if answers.is_empty() {
        return Err(AnswerError::Empty);
    }
    if answers.len() == 1
        && let Some(value) = answers.get("")
        && let Some(named) = named_answers(value, |id| find_open(open, id).is_some())
    {
        if let Some(id) = named.stale.into_iter().next() {
            return Err(AnswerError::NotPending { id });
        }
        return match_answers(open, &named.pending, schemas);
    }
    if open.is_empty() && answers.contains_key("") {
        return Err(AnswerError::NonePending);
    }
    let mut matched: Vec<Answered> = Vec::with_capacity(answers.len());
    let budget = StepBudget::default();
    for (id, answer) in answers {
        let question = find_interrupt(open, id)?;
        let interrupt = question.raised.interrupt.clone();
        if matched.iter().any(|answered| answered.interrupt == interrupt) {
            return Err(AnswerError::Duplicate { id: interrupt });
        }
        check_answer(question, answer, schemas, &budget)?;
        matched.push(Answered {
            interrupt,
            task: question.raised.task.clone(),
            answer: answer.clone(),
            principal: None,
        });
    }
    Ok(matched)
}

fn find_interrupt<'q>(open: &[&'q Interrupt], id: &str) -> Result<&'q Interrupt, AnswerError> {
    match open {
        [only] if id.is_empty() => Ok(only),
        _ if id.is_empty() => Err(AnswerError::Ambiguous {
            pending: open.iter().map(|question| question.raised.interrupt.clone()).collect(),
        }),
        _ => find_open(open, id).ok_or_else(|| AnswerError::NotPending { id: id.to_owned() }),
    }
}

fn find_open<'q>(open: &[&'q Interrupt], id: &str) -> Option<&'q Interrupt> {
    open.iter().find(|question| question.raised.interrupt.as_str() == id).copied()
}

fn check_answer(
    question: &Interrupt,
    answer: &Value,
    schemas: &dyn SchemaSource,
    budget: &StepBudget,
) -> Result<(), AnswerError> {
    let Some(schema) = &question.raised.response_schema else { return Ok(()) };
    let id = &question.raised.interrupt;
    let refuse = |message: String| AnswerError::SchemaMismatch { id: id.clone(), message };
    let exceeded = |exceeded: Exceeded| {
        AnswerError::Limit(exceeded.of(&format!("the response schema of interrupt `{id}`")))
    };
    // An MCP server checks the formats of its schema, such as `email`, and elicits an invalid value
    // again.
    let is_elicited = question.raised.elicited.is_some();
    let formats = if is_elicited { Formats::Enforced } else { Formats::OfDraft };
    let schema = schemas.compiled(schema, formats).map_err(|error| match error {
        SchemaError::Broken(error) => refuse(format!("the schema itself is invalid: {error}")),
        SchemaError::Limit(limit) => exceeded(limit),
    })?;
    schema.validate_within(answer, budget).map_err(|misfit| match misfit {
        Misfit::Invalid(message) => refuse(message),
        Misfit::Limit(limit) => exceeded(limit),
    })
}
