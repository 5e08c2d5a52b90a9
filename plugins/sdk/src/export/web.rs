//! The entry of an HTTP endpoint.

use crate::failure::Failure;
use crate::web::{Request, Response};

/// What the host wants to know of an endpoint, and how to call it.
#[derive(Debug, Clone, Copy)]
pub struct HandlerEntry {
    /// `GET`, `POST` and so on.
    pub method: &'static str,
    /// A path with optional parameters.
    pub path: &'static str,
    /// Answers a request.
    pub handle: fn(&Request) -> Result<Response, Failure>,
}

/// Implemented by `#[handler]` on a type with the name of the function.
pub trait Handler {
    /// The entry.
    const ENTRY: HandlerEntry;
}
