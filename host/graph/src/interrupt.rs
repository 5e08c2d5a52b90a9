//! Questions to people, and which answer belongs to which.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::event::{Answered, Asked};
use crate::id::{InterruptId, RunId};
use crate::limit::Exceeded;
use crate::schema::{Misfit, Schema, SchemaError};

/// A question that a task has asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What was asked.
    pub asked: Asked,
    /// When, milliseconds since 1970.
    pub asked_ms: i64,
    /// Its place in the log.
    pub asked_seq: u64,
    /// The run in which it was asked.
    pub run: RunId,
    /// The answer, once there is one.
    pub answer: Option<Value>,
}

/// Why answers were not accepted. Nothing of them was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no answer in the request.
    #[error("the request holds no answer: name a question and its answer")]
    Empty,
    /// No question is open.
    #[error("the thread does not wait for an answer: start a new run with an input instead")]
    NoneOpen,
    /// The named question is not open.
    #[error("question `{id}` is not open: it was answered, or never asked on this thread")]
    NotPending {
        /// The id as it was given.
        id: String,
    },
    /// An answer without a name, though several questions are open.
    #[error(
        "{} questions are open, so the answer must name the one it is for: {}",
        open.len(), ids(open)
    )]
    Ambiguous {
        /// The open questions.
        open: Vec<InterruptId>,
    },
    /// The same question was answered twice, once with and once without its name.
    #[error("question `{id}` has two answers in one request")]
    Twice {
        /// The question.
        id: InterruptId,
    },
    /// The answer is not what the question asks for. The question stays open.
    #[error("the answer to question `{id}` does not fit what was asked: {message}")]
    Schema {
        /// The question.
        id: InterruptId,
        /// What does not fit.
        message: String,
    },
    /// It takes too much work to say whether the answer fits. The question stays open.
    #[error("{0}")]
    Limit(Exceeded),
}

fn ids(open: &[InterruptId]) -> String {
    let ids: Vec<String> = open.iter().map(|id| format!("`{id}`")).collect();
    ids.join(", ")
}

/// The answers of an object whose keys name questions; `None` for any other value, which is an answer
/// by itself.
///
/// An object names questions if each of its keys has the form of an id, or if one of its keys is the id
/// of an open question. So an answer to a question that is no longer open never becomes the answer to
/// another question.
///
/// # Errors
///
/// [`AnswerError::NotPending`] if a question that the value names is not open.
pub fn named_answers(
    value: &Value,
    is_open: impl Fn(&str) -> bool,
) -> Result<Option<BTreeMap<String, Value>>, AnswerError> {
    let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) else {
        return Ok(None);
    };
    let (open, closed): (Vec<&String>, Vec<&String>) = fields.keys().partition(|key| is_open(key));
    let Some(&first) = closed.first() else {
        return Ok(Some(fields.clone().into_iter().collect()));
    };
    let names_questions = !open.is_empty() || closed.iter().all(|key| InterruptId::has_form(key));
    if names_questions { Err(AnswerError::NotPending { id: first.clone() }) } else { Ok(None) }
}

/// Finds the question of each answer among the open ones. The empty key stands for the only open
/// question, unless its value [names questions](named_answers); questions that are not named stay open.
///
/// # Errors
///
/// [`AnswerError`] if a single answer does not fit; then none is to be applied.
pub fn match_answers(
    open: &[&Question],
    answers: &BTreeMap<String, Value>,
) -> Result<Vec<Answered>, AnswerError> {
    if answers.is_empty() {
        return Err(AnswerError::Empty);
    }
    if answers.len() == 1
        && let Some(value) = answers.get("")
        && let Some(named) = named_answers(value, |id| find_open(open, id).is_some())?
    {
        return match_answers(open, &named);
    }
    if open.is_empty() && answers.contains_key("") {
        return Err(AnswerError::NoneOpen);
    }
    let mut matched: Vec<Answered> = Vec::with_capacity(answers.len());
    for (id, answer) in answers {
        let question = find(open, id)?;
        let interrupt = question.asked.interrupt.clone();
        if matched.iter().any(|answered| answered.interrupt == interrupt) {
            return Err(AnswerError::Twice { id: interrupt });
        }
        check_answer(question, answer)?;
        matched.push(Answered {
            interrupt,
            task: question.asked.task.clone(),
            answer: answer.clone(),
            principal: None,
        });
    }
    Ok(matched)
}

fn find<'q>(open: &[&'q Question], id: &str) -> Result<&'q Question, AnswerError> {
    match open {
        [only] if id.is_empty() => Ok(only),
        _ if id.is_empty() => Err(AnswerError::Ambiguous {
            open: open.iter().map(|question| question.asked.interrupt.clone()).collect(),
        }),
        _ => find_open(open, id).ok_or_else(|| AnswerError::NotPending { id: id.to_owned() }),
    }
}

fn find_open<'q>(open: &[&'q Question], id: &str) -> Option<&'q Question> {
    open.iter().find(|question| question.asked.interrupt.as_str() == id).copied()
}

fn check_answer(question: &Question, answer: &Value) -> Result<(), AnswerError> {
    let Some(schema) = &question.asked.response_schema else { return Ok(()) };
    let id = &question.asked.interrupt;
    let refuse = |message: String| AnswerError::Schema { id: id.clone(), message };
    let exceeded = |exceeded: Exceeded| {
        AnswerError::Limit(exceeded.of(&format!("the schema of the answer to question `{id}`")))
    };
    // Those who ask for an address of mail check it, and would ask again.
    let is_elicited = question.asked.elicited.is_some();
    let schema =
        if is_elicited { Schema::compile_with_formats(schema) } else { Schema::compile(schema) };
    let schema = schema.map_err(|error| match error {
        SchemaError::Broken(error) => {
            refuse(format!("the question's own schema is broken: {error}"))
        }
        SchemaError::Limit(limit) => exceeded(limit),
    })?;
    schema.validate(answer).map_err(|misfit| match misfit {
        Misfit::Invalid(message) => refuse(message),
        Misfit::Limit(limit) => exceeded(limit),
    })
}
