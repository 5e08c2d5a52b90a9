//! Adapters for models, services and MCP servers that return the results in the running case.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest};
use wattle_model::read_structured;
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::hostcall::tools::ToolInfo;
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{BlobStore, Caller, Model, Net, ToolServers};
use wattle_run::schemas::SchemaCache;

use crate::cases::calls::{CallStub, StubResult};
use crate::cases::case::Case;
use crate::cases::date::Today;

/// Adapters that return the results in the running case. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CasePorts {
    state: Arc<Mutex<State>>,
    today: Today,
    /// Compiled response schemas.
    schemas: Arc<SchemaCache>,
}

#[derive(Default)]
struct State {
    case: String,
    /// Entries whose results are not used yet, with their indexes in the case.
    unused: Vec<(usize, CallStub)>,
}

impl CasePorts {
    /// Creates adapters that refuse every call until a case begins.
    pub(crate) fn new(today: Today) -> Self {
        Self { state: Arc::default(), today, schemas: Arc::default() }
    }

    /// Begins a case: from now on, the adapters return the results in the case.
    pub(crate) fn begin(&self, case: &Case) {
        let unused = case.calls.iter().cloned().enumerate().collect();
        *self.lock() = State { case: case.name.clone(), unused };
    }

    /// Ends the case. Returns the entries whose results were not used.
    pub(crate) fn end(&self) -> Vec<(usize, CallStub)> {
        std::mem::take(&mut *self.lock()).unused
    }

    /// Locks the state and ignores poisoning: no code that holds the lock can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the result of the first entry that matches a request.
    fn take_result<T>(
        &self,
        what: &str,
        request: &impl Serialize,
        of_kind: impl Fn(&StubResult) -> Option<Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let mut state = self.lock();
        let found = state.unused.iter().position(|(_, entry)| {
            of_kind(&entry.result).is_some() && entry.matches(&request, &self.today)
        });
        let result = found.and_then(|at| of_kind(&state.unused.remove(at).1.result));
        result.unwrap_or_else(|| Err(no_entry(&state.case, what)))
    }
}

fn no_entry(case: &str, what: &str) -> Failure {
    let message = format!(
        "no entry under `calls` of case `{case}` matches this {what}; add one, or run `wattle test \
         --live`"
    );
    Failure::new(code::DENIED, message)
}

#[async_trait]
impl Model for CasePorts {
    fn has_route(&self, _: &Caller, _: &str) -> bool {
        true
    }

    fn route(&self, _: &Caller, route: &str) -> Option<RouteInfo> {
        Some(RouteInfo {
            provider: "case".to_owned(),
            model: route.to_owned(),
            has_fallback: false,
            candidates: 1,
        })
    }

    /// Returns the matching completion in the case. The structured output of the completion is
    /// parsed and validated like that of a provider. Invalid structured output is not repaired,
    /// because the case has no second completion for the repair.
    async fn complete(
        &self,
        caller: &Caller,
        request: &CompletionRequest,
        _: &dyn BlobStore,
        deltas: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        let what = format!("call of the model route `{}`", request.route);
        let completion = self.take_result(&what, request, |result| match result {
            StubResult::Completion(completion) => Some(completion.clone()),
            StubResult::Response(_) => None,
        })?;
        completion.deltas().into_iter().for_each(|delta| deltas.push(delta));
        let Some(wanted) = &request.response_schema else { return Ok(completion) };
        read_structured(caller.owner, &self.schemas, &request.route, wanted, completion).await
    }

    async fn set_route(&self, _: &Caller, route: &str, _: Value) -> Result<(), Failure> {
        Err(no_entry(&self.lock().case, &format!("change of the route `{route}`")))
    }
}

#[async_trait]
impl Net for CasePorts {
    async fn send(
        &self,
        caller: &Caller,
        grants: &Grants,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        wattle_net::check_request(caller, grants, request)?;
        let what = format!("request `{} {}`", request.method, request.url);
        let mut response = self.take_result(&what, request, |result| match result {
            StubResult::Response(response) => Some(response.clone()),
            StubResult::Completion(_) => None,
        })?;
        response.url.clone_from(&request.url);
        Ok(response)
    }
}

#[async_trait]
impl ToolServers for CasePorts {
    fn has_server(&self, _: &str) -> bool {
        true
    }

    async fn list(&self, _: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure> {
        Err(no_entry(&self.lock().case, &format!("use of the MCP server `{server}`")))
    }

    async fn call(
        &self,
        _: &Caller,
        server: &str,
        _: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        Err(no_entry(&self.lock().case, &format!("call of the MCP server `{server}`")))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;
    use wattle_graph::llm::ResponseSchema;
    use wattle_run::caller_id::CallerId;
    use wattle_run::ports::model::DiscardDeltas;
    use wattle_store::InMemoryBlobs;

    use super::*;

    /// Calls a model of a case with one completion. The response schema requires a number `price`.
    async fn completed(result: &Value, is_structured: bool) -> Result<Completion, Failure> {
        let mut call = json!({ "llm": {} });
        call.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
        let case = Case {
            name: "price".to_owned(),
            graph: None,
            input: json!({}),
            context: Value::Null,
            answers: Vec::new(),
            calls: vec![CallStub::parse(&call).unwrap()],
            expect: Vec::new(),
        };
        let ports = CasePorts::new(Today { now_ms: 0, zone: TimeZone::UTC });
        ports.begin(&case);
        let schema = json!({ "type": "object", "required": ["price"],
            "properties": { "price": { "type": "number" } } });
        let schema = ResponseSchema { name: "quote".to_owned(), schema };
        let response_schema = is_structured.then_some(schema);
        let request =
            CompletionRequest { response_schema, ..CompletionRequest::new("chat", Vec::new()) };
        let caller = Caller {
            app: "notes".parse().unwrap(),
            plugin: "notes".parse().unwrap(),
            tenant: None,
            owner: CallerId::default(),
        };
        ports.complete(&caller, &request, &InMemoryBlobs::new(), &DiscardDeltas).await
    }

    #[tokio::test]
    async fn only_a_request_with_a_schema_gets_structured_output() {
        let price = json!({ "price": 320.4 });
        for result in [json!({ "json": price }), json!({ "text": price.to_string() })] {
            let structured = completed(&result, true).await.unwrap();
            assert_eq!(structured.structured.as_ref(), Some(&price), "{result}");
            let text = completed(&result, false).await.unwrap();
            assert_eq!(text.structured, None, "{result}");
            assert_eq!(text.text(), price.to_string());
        }
    }

    #[tokio::test]
    async fn structured_output_that_violates_the_schema_fails() {
        for result in [json!({ "json": { "prize": 1 } }), json!({ "text": "about 320" })] {
            let failure = completed(&result, true).await.unwrap_err();
            assert_eq!(failure.code, code::INVALID, "{result}");
            let message = "of route `chat` violates the response schema `quote`: ";
            assert!(failure.message.contains(message), "{}", failure.message);
        }
    }
}
