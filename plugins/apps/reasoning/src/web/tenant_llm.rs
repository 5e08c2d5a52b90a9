//! `/api/v1/config/tenant-llm`: the model that a tenant brings itself.

use wattle_plugin::prelude::{Failure, Request, Response, Value, code, handler, json, tenants};

use crate::ROUTE;
use crate::web::{Refusal, answer};

/// Sets the tenant's model. A key in it is kept by the host and never shown again.
#[handler(PUT, "/api/v1/config/tenant-llm")]
pub(crate) fn put(request: &Request) -> Result<Response, Failure> {
    answer(request, || {
        let config: Value = request.json()?;
        if !config.is_object() {
            return Err(Refusal::invalid("请求体必须是 JSON 对象"));
        }
        tenants::set_route(ROUTE, &config).map_err(refused)?;
        Ok(shown()?)
    })
}

/// Shows the tenant's model.
#[handler(GET, "/api/v1/config/tenant-llm")]
pub(crate) fn get(request: &Request) -> Result<Response, Failure> {
    answer(request, || Ok(shown()?))
}

/// Goes back to the operator's model.
#[handler(DELETE, "/api/v1/config/tenant-llm")]
pub(crate) fn delete(request: &Request) -> Result<Response, Failure> {
    answer(request, || {
        tenants::remove_route(ROUTE)?;
        Ok(shown()?)
    })
}

/// What the tenant has set; `null` if the operator's model is used.
fn shown() -> Result<Value, Failure> {
    Ok(json!(tenants::get_route(ROUTE)?))
}

/// What the host does not take is the caller's mistake; so is a forbidden address.
fn refused(failure: Failure) -> Refusal {
    match failure.code.as_str() {
        code::INVALID | code::DENIED => Refusal::invalid(failure.message),
        _ => Refusal::from(failure),
    }
}
