//! Settings of the request's tenant, for web handlers that let a tenant bring its own models.
//!
//! Without a tenant in the request they are those of the default tenant. Inside a node they are
//! not there (`unsupported`), since a run must not change what it runs with.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::FakeHost;
//!
//! /// Lets a tenant use its own model.
//! #[handler(PUT, "/models/chat")]
//! fn set_model(request: &Request) -> Result<Response, Failure> {
//!     tenants::set_route("chat", request.json::<Value>()?)?;
//!     Ok(Response::empty(204))
//! }
//!
//! # fn main() -> Result<(), Failure> {
//! let host = FakeHost::new();
//! let body = json!({"model": "gpt-4o", "key": "sk-1"});
//! host.run(|| set_model(&Request::new("PUT", "/models/chat").with_body(body.to_string())))?;
//! // The key is kept by the host and never shown again.
//! let own = host.run(|| tenants::get_route("chat"))?;
//! assert_eq!(own, Some(json!({"model": "gpt-4o"})));
//! host.run(|| tenants::remove_route("chat"))?;
//! assert_eq!(host.run(|| tenants::get_route("chat"))?, None);
//! # Ok(())
//! # }
//! ```

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::json;

/// Sets what stands behind a model route for the tenant of the request. The document has the
/// fields of the host's own endpoint for it; a key in it is kept by the host.
///
/// # Errors
///
/// `denied` if the grant `tenant_routes` does not name the route, `invalid` if the document is
/// wrong, `unsupported` inside a node.
pub fn set_route(route: &str, config: impl Serialize) -> Result<(), Failure> {
    host::tenants::set_route(route, json::to_value("the route", config)?)
}

/// Reads back what the tenant has set, without the key; `None` if it has nothing of its own.
pub fn get_route(route: &str) -> Result<Option<Value>, Failure> {
    host::tenants::get_route(route)
}

/// Goes back to the operator's route.
pub fn remove_route(route: &str) -> Result<(), Failure> {
    host::tenants::remove_route(route)
}
