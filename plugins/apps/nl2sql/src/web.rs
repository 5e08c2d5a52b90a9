//! The app's HTTP endpoints, one resource a file.
//!
//! Every response is `{code, message, data}`. The code is 0, or the HTTP status if that is not 200.

pub(crate) mod chat;
pub(crate) mod downloads;
mod event;
pub(crate) mod messages;
pub(crate) mod sessions;
pub(crate) mod suggestions;

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, code};

const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const INTERNAL: u16 = 500;
const BAD_GATEWAY: u16 = 502;

/// Default and maximum number of items in a list.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;

/// Maximum length of a session id, which also names files.
const SESSION_CHARACTERS: usize = 64;

/// A response with data.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Envelope")]
struct Envelope<T> {
    /// Always 0.
    code: u16,
    message: String,
    data: T,
}

/// A response without data, because the request failed.
#[derive(Serialize, JsonSchema)]
struct ErrorEnvelope {
    /// The HTTP status.
    code: u16,
    /// The reason, for users.
    message: String,
    data: (),
}

/// The response to a deletion.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    session_id: String,
    deleted: bool,
}

fn ok(data: &impl Serialize) -> Result<Response, Failure> {
    Response::json(200, &Envelope { code: 0, message: "ok".to_owned(), data })
}

fn error(status: u16, message: &str) -> Result<Response, Failure> {
    let envelope = ErrorEnvelope { code: status, message: message.to_owned(), data: () };
    Response::json(status, &envelope)
}

/// Converts the result of a handler to a response in the app's format.
fn respond(worked: Result<Response, Failure>) -> Result<Response, Failure> {
    match worked {
        Ok(response) => Ok(response),
        Err(failure) => {
            error(failure.status().unwrap_or_else(|| status(&failure)), &failure.message)
        }
    }
}

/// Returns the status of a failure. Models and databases are upstream of this app; other failures
/// are its own.
fn status(failure: &Failure) -> u16 {
    match failure.code.as_str() {
        code::BUSY | code::CONFLICT => CONFLICT,
        code::UNAVAILABLE | code::TIMEOUT | code::RATE_LIMITED => BAD_GATEWAY,
        _ => INTERNAL,
    }
}

fn refuse(status: u16, message: impl Into<String>) -> Failure {
    Failure::invalid(message).with_status(status)
}

/// Parses `offset` and `limit` of a list.
fn page(request: &Request) -> Result<(u32, u32), Failure> {
    let number = |name: &str, default: u32| match request.query(name) {
        None | Some("") => Ok(default),
        Some(text) => {
            text.parse().map_err(|_| refuse(BAD_REQUEST, format!("{name} 必须是非负整数")))
        }
    };
    let limit = number("limit", PAGE)?;
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(refuse(BAD_REQUEST, format!("limit 必须在 1 到 {LARGEST_PAGE} 之间")));
    }
    Ok((number("offset", 0)?, limit))
}

/// Checks a session id, which is also the id of a thread and the name of a folder.
fn check_session(name: &str) -> Result<(), Failure> {
    let is_name = (1..=SESSION_CHARACTERS).contains(&name.len())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_');
    if is_name {
        return Ok(());
    }
    Err(refuse(
        BAD_REQUEST,
        format!("session_id 只能包含字母、数字、- 和 _，长度 1 到 {SESSION_CHARACTERS}"),
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "nl2sql", crate::WATTLE_HANDLERS);
    }
}
