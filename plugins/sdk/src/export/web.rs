//! The entry of an HTTP endpoint.

use crate::failure::Failure;
use crate::web::{Request, Response};

/// The description of an endpoint and the function that handles its requests.
#[derive(Debug, Clone, Copy)]
pub struct HandlerEntry {
    /// HTTP method in upper case.
    pub method: &'static str,
    /// Path with optional parameters, such as `/api/items/{id}`.
    pub path: &'static str,
    /// Handles a request.
    pub handle: fn(&Request) -> Result<Response, Failure>,
}

/// A web handler. `#[handler]` implements it for a type with the name of the function.
pub trait Handler {
    /// The entry of the handler.
    const ENTRY: HandlerEntry;
}
