//! What a request may see: its tenant, and threads and runs that are its own.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use wattle_graph::failure::code;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::problem::{Problem, api_code};
use crate::state::{ApiConfig, ApiState};

/// On whose behalf a request comes.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The tenant; `None` if there are none.
    pub tenant: Option<String>,
}

impl FromRequestParts<ApiState> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let tenant = tenant(&state.config, &parts.headers);
        tenant.map(|tenant| Self { tenant }).map_err(|problem| problem.at(parts.uri.path()))
    }
}

/// The tenant of a request.
///
/// # Errors
///
/// `unauthorized` if tenants are configured and the request names none.
pub fn tenant(config: &ApiConfig, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(name) = &config.tenant_header else { return Ok(None) };
    let tenant = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if tenant.is_empty() {
        let detail = format!("the request names no tenant: the header `{name}` is missing");
        return Err(Problem::new(api_code::UNAUTHORIZED, detail));
    }
    Ok(Some(tenant.to_owned()))
}

impl Scope {
    /// A thread that this request may see.
    ///
    /// # Errors
    ///
    /// `not-found` if there is none, or if it belongs to another tenant.
    pub async fn thread(&self, state: &ApiState, id: &str) -> Result<ThreadRecord, Problem> {
        let missing = || {
            Problem::not_found(
                "thread",
                id,
                "it was deleted, has expired or never was; list \
                 threads with `GET /api/v1/threads`",
            )
        };
        let thread = parse_thread(id)?;
        let head = state.engine.ports().store.thread(&thread).await?.ok_or_else(missing)?;
        if self.tenant.is_some() && head.record.tenant != self.tenant {
            return Err(missing());
        }
        Ok(head.record)
    }

    /// A run that this request may see.
    ///
    /// # Errors
    ///
    /// `not-found` if there is none, or if its thread belongs to another tenant.
    pub async fn run(&self, state: &ApiState, id: &str) -> Result<RunRecord, Problem> {
        let missing = || Problem::not_found("run", id, "its thread was deleted, or it never was");
        let run = RunId::new(id).map_err(|error| Problem::new(code::INVALID, error.to_string()))?;
        let record = state.engine.ports().store.run(&run).await?.ok_or_else(missing)?;
        self.thread(state, record.thread.as_str()).await.map_err(|_| missing())?;
        Ok(record)
    }
}

fn parse_thread(id: &str) -> Result<ThreadId, Problem> {
    ThreadId::new(id).map_err(|error| Problem::new(code::INVALID, error.to_string()))
}
