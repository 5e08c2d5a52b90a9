//! The response of a stand-in, for the server to send and to log.

use axum::response::Response;

/// The response of a service, with the name of the applied rule.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) rule: &'static str,
    pub(super) response: Response,
}
