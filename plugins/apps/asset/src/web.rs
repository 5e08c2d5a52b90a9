//! The app's HTTP endpoints. Errors are `{"error": "..."}`, in the language of the app's users.

pub(crate) mod assets;
mod document;
pub(crate) mod invoke;
pub(crate) mod portfolios;
pub(crate) mod resume;
pub(crate) mod threads;

use wattle_plugin::prelude::{Failure, Value};
use wattle_plugin::web::{refuse, status};

use crate::confirm;

/// Returns the failure for a body that is not JSON of the expected form.
fn not_understood() -> Failure {
    refuse(status::BAD_REQUEST, "请求格式不正确")
}

/// Returns the failure for a thread that has expired or never existed.
fn expired() -> Failure {
    refuse(status::GONE, "上次解析结果已过期，请重新输入")
}

/// Returns the message of a failure for users, which does not name nodes and plugins. A failure
/// without one has only its own message.
fn reason(failure: &Failure) -> &str {
    detail(failure, confirm::REASON).and_then(Value::as_str).unwrap_or(&failure.message)
}

fn detail<'a>(failure: &'a Failure, name: &str) -> Option<&'a Value> {
    failure.details.as_deref().and_then(|details| details.get(name))
}

#[cfg(test)]
mod tests {
    #[test]
    fn openapi_document_describes_the_endpoints() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        wattle_plugin::testing::check_openapi(file, "asset", crate::WATTLE_HANDLERS);
    }
}
