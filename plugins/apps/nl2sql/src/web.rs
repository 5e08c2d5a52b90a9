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
use wattle_plugin::web::{ErrorForm, refuse, status};

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

impl ErrorForm for ErrorEnvelope {
    fn new(_request: &Request, status: u16, failure: Failure) -> Self {
        Self { code: status, message: failure.message, data: () }
    }

    /// Models and databases are upstream of this app; other failures are its own.
    fn status(failure: &Failure) -> Option<u16> {
        Some(failure.status().unwrap_or(match failure.code.as_str() {
            code::BUSY | code::CONFLICT => status::CONFLICT,
            code::UNAVAILABLE | code::TIMEOUT | code::RATE_LIMITED => status::BAD_GATEWAY,
            _ => status::INTERNAL_SERVER_ERROR,
        }))
    }
}

/// Parses `offset` and `limit` of a list.
fn page(request: &Request) -> Result<(u32, u32), Failure> {
    let number = |name: &str, default: u32| match request.query(name) {
        None | Some("") => Ok(default),
        Some(text) => {
            text.parse().map_err(|_| refuse(status::BAD_REQUEST, format!("{name} 必须是非负整数")))
        }
    };
    let limit = number("limit", PAGE)?;
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(refuse(status::BAD_REQUEST, format!("limit 必须在 1 到 {LARGEST_PAGE} 之间")));
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
        status::BAD_REQUEST,
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
