//! Web handlers: model routes of the tenant, and a tool call outside of a run.

use wattle_plugin::prelude::{
    Failure, Request, Response, Value, handler, json, llm, tenants, tools,
};

use crate::caller::Call;

/// Sets a model route of the tenant.
#[handler(PUT, "/routes/{route}")]
pub(crate) fn set_route(request: &Request) -> Result<Response, Failure> {
    tenants::set_route(&request.param::<String>("route")?, request.json::<Value>()?)?;
    Ok(Response::empty(204))
}

/// Returns a model route of the tenant.
#[handler(GET, "/routes/{route}")]
pub(crate) fn get_route(request: &Request) -> Result<Response, Failure> {
    Response::json(200, &tenants::get_route(&request.param::<String>("route")?)?)
}

/// Removes a model route of the tenant.
#[handler(DELETE, "/routes/{route}")]
pub(crate) fn remove_route(request: &Request) -> Result<Response, Failure> {
    tenants::remove_route(&request.param::<String>("route")?)?;
    Ok(Response::empty(204))
}

/// Describes a model route as it applies to the tenant.
#[handler(GET, "/models/{route}")]
pub(crate) fn model(request: &Request) -> Result<Response, Failure> {
    let info = llm::route(&request.param::<String>("route")?)?;
    let llm::RouteInfo { provider, model, has_fallback, .. } = info;
    let info = json!({ "provider": provider, "model": model, "has_fallback": has_fallback });
    Response::json(200, &info)
}

/// Calls a tool.
#[handler(POST, "/call")]
pub(crate) fn call(request: &Request) -> Result<Response, Failure> {
    let output = tools::Call::from(request.json::<Call>()?).call()?;
    Response::json(200, &json!({ "text": output.text_content(), "is_error": output.is_error }))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, json, llm};
    use wattle_plugin::testing::FakeHost;

    use super::{get_route, model, set_route};

    #[test]
    fn a_route_is_read_back_without_its_key() -> Result<(), Failure> {
        let host = FakeHost::new();
        let request = |method| Request::new(method, "/routes/chat").with_param("route", "chat");
        let body = json!({"model": "m", "key": "k"}).to_string();
        host.run(|| set_route(&request("PUT").with_body(body)))?;
        let response = host.run(|| get_route(&request("GET")))?;
        assert_eq!(response.json_body()?, json!({"model": "m"}));
        Ok(())
    }

    #[test]
    fn a_model_is_described() -> Result<(), Failure> {
        let info = llm::RouteInfo { model: "m".to_owned(), ..llm::RouteInfo::default() };
        let host = FakeHost::new().route("chat", info);
        let request = Request::new("GET", "/models/chat").with_param("route", "chat");
        assert_eq!(host.run(|| model(&request))?.json_body()?["model"], "m");
        Ok(())
    }
}
