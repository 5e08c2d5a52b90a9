//! Model routes of the request's tenant, for web handlers through which tenants configure their own
//! models.
//!
//! A request without a tenant uses the routes of the default tenant. Within a node, the functions
//! fail with `unsupported`, because a run must not change its own configuration.
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
//! // The host stores the key and never returns it.
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

/// Sets a model route of the tenant. `config` has the fields of the request body of
/// `PUT /api/v1/tenants/{tenant}/routes/{route}`. The host stores the API key in it and never
/// returns the key.
///
/// # Errors
///
/// `denied` if the grant `tenant_routes` does not contain the route, `invalid` if `config` is
/// invalid, `unsupported` within a node.
pub fn set_route(route: &str, config: impl Serialize) -> Result<(), Failure> {
    host::tenants::set_route(route, json::to_value("the route", config)?)
}

/// Returns the tenant's own route without its API key, or `None` if the tenant has none.
pub fn get_route(route: &str) -> Result<Option<Value>, Failure> {
    host::tenants::get_route(route)
}

/// Removes the tenant's route, so that the operator's route applies again.
pub fn remove_route(route: &str) -> Result<(), Failure> {
    host::tenants::remove_route(route)
}
