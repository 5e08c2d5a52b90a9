//! Calls of `interrupt`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::interrupt as raw;
use crate::failure::Failure;
use crate::interrupt::Question;
use crate::wire::convert::{raw_extra, text, value};

pub(crate) fn ask(question: Question) -> Result<Value, Failure> {
    let question = raw::Question {
        payload: question.payload.to_string(),
        response_schema: text(question.response_schema),
        extra: raw_extra(question.extra),
    };
    Ok(value(&raw::ask(&question)?))
}
