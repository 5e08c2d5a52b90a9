//! `/api/v1/config/tenant-llm`: the model route of a tenant.

use wattle_plugin::prelude::{Failure, Request, Response, Value, code, handler, tenants};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::BAD_REQUEST;

use crate::ROUTE;
use crate::web::{Envelope, ErrorEnvelope, respond};

/// Sets the model route of the tenant. The host stores the key and never returns it.
#[handler(PUT, "/api/v1/config/tenant-llm", body = Value, returns = Envelope<Value>,
    error = ErrorEnvelope)]
pub(crate) fn put(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let config: Value = request.json()?;
        if !config.is_object() {
            return Err(refuse(BAD_REQUEST, "请求体必须是 JSON 对象"));
        }
        tenants::set_route(ROUTE, &config).map_err(refused)?;
        shown()
    })
}

/// Responds with the model route of the tenant.
#[handler(GET, "/api/v1/config/tenant-llm", returns = Envelope<Value>, error = ErrorEnvelope)]
pub(crate) fn get(request: &Request) -> Result<Response, Failure> {
    respond(request, shown)
}

/// Removes the model route of the tenant, so that the operator's route applies.
#[handler(DELETE, "/api/v1/config/tenant-llm", returns = Envelope<Value>,
    error = ErrorEnvelope)]
pub(crate) fn delete(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        tenants::remove_route(ROUTE)?;
        shown()
    })
}

/// Returns the model route of the tenant, or `null` if the operator's route applies.
fn shown() -> Result<Option<Value>, Failure> {
    tenants::get_route(ROUTE)
}

/// Returns the refusal for a failure of the host. A route that the host rejects, and one with a
/// forbidden URL, are invalid requests.
fn refused(failure: Failure) -> Failure {
    match failure.code.as_str() {
        code::INVALID | code::DENIED => refuse(BAD_REQUEST, failure.message),
        _ => failure,
    }
}
