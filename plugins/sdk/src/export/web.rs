//! The entry of an HTTP endpoint.

use crate::export::Operation;
use crate::failure::Failure;
use crate::web::{Request, Response};

/// The description of an endpoint and the function that handles its requests.
#[derive(Debug, Clone, Copy)]
pub struct HandlerEntry {
    /// HTTP method in upper case.
    pub method: &'static str,
    /// Path with optional parameters, such as `/api/items/{id}`.
    pub path: &'static str,
    /// Documentation of the handler.
    pub doc: &'static str,
    /// Adds the declared types to the description of the endpoint.
    pub describe: fn(&mut Operation<'_>),
    /// Handles a request.
    pub handle: fn(&Request) -> Result<Response, Failure>,
}

/// A web handler. `#[handler]` implements it for a type with the name of the function.
pub trait Handler {
    /// The entry of the handler.
    const ENTRY: HandlerEntry;
}
