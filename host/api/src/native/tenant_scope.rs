//! Access of a request to tenants, threads and runs.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use serde_json::json;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, RunId, ThreadId};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{RunRecord, ThreadHead, ThreadRecord};

use crate::config::ApiConfig;
use crate::guard::authenticated_key::AuthenticatedKey;
use crate::guard::request_key;
use crate::guard::tenant_name::check_tenant;
use crate::problem::{Problem, api_code};

/// The tenant whose resources a request can access.
#[derive(Clone, Debug)]
pub struct TenantScope {
    /// The tenant; `None` for access to the threads of all tenants.
    pub tenant: Option<String>,
}

impl<S> FromRequestParts<S> for TenantScope
where
    Arc<ApiConfig>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let config = Arc::<ApiConfig>::from_ref(state);
        let tenant = match parts.extensions.get::<Operator>() {
            // A request of the operator in the same process names no tenant.
            Some(Operator) => Ok(config.default_tenant.clone()),
            None => resolve_tenant(&config, &parts.headers, &parts.extensions),
        };
        tenant
            .map(|tenant| Self { tenant })
            .map_err(|problem| problem.with_instance(parts.uri.path()))
    }
}

/// Marks a request as the operator's. Callers in the same process insert it into the extensions of
/// a request. Requests over HTTP never have it.
#[derive(Clone, Copy, Debug)]
pub struct Operator;

/// The role of a request, the operator or a tenant, for endpoints on which the operator can act for
/// any tenant.
#[derive(Clone, Debug)]
pub struct RequestRole {
    /// Tenant of a request whose parameters name none.
    pub tenant: Option<String>,
    /// True for the operator: the request comes from the same process, the host has neither keys
    /// nor tenants, or an operator key sends the request without a tenant.
    pub is_operator: bool,
}

impl RequestRole {
    fn from_parts(config: &ApiConfig, parts: &Parts) -> Result<Self, Problem> {
        let Parts { headers, extensions, .. } = parts;
        let key = request_key::find(config, headers, extensions);
        let has_operator_key = || -> Result<bool, Problem> {
            let is_operator_key = key.as_ref().is_some_and(AuthenticatedKey::is_operator_key);
            Ok(is_operator_key && named_tenant(config, headers, extensions)?.is_none())
        };
        if extensions.get::<Operator>().is_some() || has_operator_key()? {
            return Ok(Self { tenant: config.default_tenant.clone(), is_operator: true });
        }
        let tenant = resolve_tenant(config, headers, extensions)?;
        let is_operator_key = key.as_ref().is_none_or(AuthenticatedKey::is_operator_key);
        Ok(Self { is_operator: is_operator_key && tenant.is_none(), tenant })
    }
}

impl<S> FromRequestParts<S> for RequestRole
where
    Arc<ApiConfig>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let config = Arc::<ApiConfig>::from_ref(state);
        Self::from_parts(&config, parts).map_err(|problem| problem.with_instance(parts.uri.path()))
    }
}

/// Admits only the operator, for data that belongs to no tenant, such as names of secrets in grants
/// or file paths. Rejects a request that names a tenant by key or header, or whose key is not an
/// operator key.
#[derive(Clone, Copy, Debug)]
pub struct OperatorOnly;

impl<S> FromRequestParts<S> for OperatorOnly
where
    Arc<ApiConfig>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        if parts.extensions.get::<Operator>().is_some() {
            return Ok(Self);
        }
        let config = Arc::<ApiConfig>::from_ref(state);
        let (path, headers, extensions) = (parts.uri.path(), &parts.headers, &parts.extensions);
        let named = named_tenant(&config, headers, extensions);
        let named = named.map_err(|problem| problem.with_instance(path))?;
        let key = request_key::find(&config, headers, extensions);
        match named {
            None if key.is_none_or(|key| key.is_operator_key()) => Ok(Self),
            named => {
                Err(operator_only_problem("this", &named.unwrap_or_default()).with_instance(path))
            }
        }
    }
}

/// Creates the problem for a request that only the operator may send. `tenant` is empty if the
/// request names no tenant and its key is not an operator key.
pub fn operator_only_problem(what: &str, tenant: &str) -> Problem {
    let reason = if tenant.is_empty() {
        "but the key is not an operator key".to_owned()
    } else {
        format!("but the request belongs to tenant `{tenant}`")
    };
    let detail = format!(
        "{what} is reserved for the operator, {reason}; send a key of `[auth]`, or one with the \
         scope `admin` and no tenant, and name no tenant"
    );
    Problem::new(code::DENIED, detail)
}

/// Returns the tenant that a request names by its key or header.
///
/// # Errors
///
/// `denied` and `invalid` under the conditions of [`resolve_tenant`].
pub fn named_tenant(
    config: &ApiConfig,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<String>, Problem> {
    let named = config.tenant_header.as_ref().and_then(|name| headers.get(name));
    let named = named.map(|value| value.to_str().unwrap_or("?")).filter(|name| !name.is_empty());
    named.map(check_tenant).transpose()?;
    let key = request_key::find(config, headers, extensions);
    match (key.as_ref().and_then(AuthenticatedKey::tenant), named) {
        (Some(own), Some(named)) if own != named => Err(Problem::new(
            code::DENIED,
            format!("the key belongs to another tenant than `{named}`"),
        )),
        (own, named) => Ok(own.or(named).map(str::to_owned)),
    }
}

/// Returns the tenant of a request: the tenant of its key, else the tenant in the header, else the
/// default tenant.
///
/// # Errors
///
/// `unauthorized` if `tenant_header` is configured and the request names no tenant, `denied` if
/// header and key name different tenants, `invalid` for an invalid name.
pub fn resolve_tenant(
    config: &ApiConfig,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<String>, Problem> {
    if let Some(tenant) = named_tenant(config, headers, extensions)? {
        return Ok(Some(tenant));
    }
    match (&config.default_tenant, &config.tenant_header) {
        (Some(tenant), _) => Ok(Some(tenant.clone())),
        (None, Some(name)) => {
            let detail = format!("the request names no tenant: the header `{name}` is missing");
            let details = json!({ "missing": "tenant", "header": name.as_str() });
            Err(Problem::new(api_code::UNAUTHORIZED, detail).with_details(details))
        }
        (None, None) => Ok(None),
    }
}

impl TenantScope {
    /// Returns a thread that the request can access.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist or belongs to another tenant.
    pub async fn thread(&self, engine: &Engine, id: &str) -> Result<ThreadRecord, Problem> {
        self.thread_head(engine, id).await.map(|head| head.record)
    }

    /// Returns the head of a thread that the request can access.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist or belongs to another tenant.
    pub async fn thread_head(&self, engine: &Engine, id: &str) -> Result<ThreadHead, Problem> {
        let missing = || {
            let hint = "it was deleted, has expired or never existed; list threads with \
                        `GET /api/v1/threads`";
            Problem::not_found("thread", id, hint)
        };
        let thread = parse_thread_id(id)?;
        let head = engine.ports().store.thread(&thread).await?.ok_or_else(missing)?;
        if self.tenant.is_some() && head.record.tenant != self.tenant {
            return Err(missing());
        }
        Ok(head)
    }

    /// Returns a thread that a web handler of an app can hand off to: a thread that the app can
    /// read through the `runs` interface.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist or belongs to another app or tenant.
    pub async fn app_thread(
        &self,
        engine: &Engine,
        app: &AppName,
        thread: &ThreadId,
    ) -> Result<ThreadRecord, Problem> {
        let head = engine.ports().store.thread(thread).await?;
        let record = head.map(|head| head.record);
        record.filter(|record| record.is_accessible_to(app, self.tenant.as_deref())).ok_or_else(
            || {
                let hint = format!(
                    "app `{app}` has no such thread for this tenant, or the thread has expired"
                );
                Problem::not_found("thread", thread.as_str(), &hint)
            },
        )
    }

    /// Returns a run that the request can access.
    ///
    /// # Errors
    ///
    /// `not-found` if the run does not exist or its thread belongs to another tenant.
    pub async fn run(&self, engine: &Engine, id: &str) -> Result<RunRecord, Problem> {
        self.run_and_thread(engine, id).await.map(|(run, _thread)| run)
    }

    /// Returns a run that the request can access, and its thread.
    ///
    /// # Errors
    ///
    /// The errors of [`TenantScope::run`].
    pub async fn run_and_thread(
        &self,
        engine: &Engine,
        id: &str,
    ) -> Result<(RunRecord, ThreadRecord), Problem> {
        let missing =
            || Problem::not_found("run", id, "the run never existed, or its thread was deleted");
        let run = RunId::new(id).map_err(|error| Problem::new(code::INVALID, error.to_string()))?;
        let record = engine.ports().store.run(&run).await?.ok_or_else(missing)?;
        match self.thread(engine, record.thread.as_str()).await {
            Err(problem) if problem.code == code::NOT_FOUND => Err(missing()),
            result => result.map(|thread| (record, thread)),
        }
    }
}

pub(super) fn parse_thread_id(id: &str) -> Result<ThreadId, Problem> {
    ThreadId::new(id).map_err(|error| Problem::new(code::INVALID, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        config: &ApiConfig,
        headers: &[(&'static str, &str)],
    ) -> Result<Option<String>, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        resolve_tenant(config, &map, &Extensions::new()).map_err(|problem| problem.code.clone())
    }

    #[test]
    fn tenant_comes_from_key_then_header_then_default() {
        let key = (ApiConfig::key_digest("k-acme"), "acme".to_owned());
        let config = ApiConfig {
            tenant_keys: [key].into(),
            tenant_header: Some("x-tenant".parse().unwrap()),
            ..ApiConfig::default()
        };
        let named = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(check(&config, &[("x-api-key", "k-acme")]), named("acme"));
        assert_eq!(check(&config, &[("authorization", "Bearer k-acme")]), named("acme"));
        assert_eq!(check(&config, &[("x-tenant", "other")]), named("other"));
        assert_eq!(check(&config, &[("x-api-key", "k-acme"), ("x-tenant", "acme")]), named("acme"));
        let both = [("x-api-key", "k-acme"), ("x-tenant", "other")];
        assert_eq!(check(&config, &both), Err("denied".into()));
        assert_eq!(check(&config, &[]), Err("unauthorized".into()));
        for name in ["a/b", "..", "~"] {
            assert_eq!(check(&config, &[("x-tenant", name)]), Err("invalid".into()), "{name}");
        }
        let config = ApiConfig { default_tenant: Some("default".into()), ..config };
        assert_eq!(check(&config, &[]), named("default"));
    }

    #[test]
    fn tenant_header_is_ignored_unless_configured() {
        assert_eq!(check(&ApiConfig::default(), &[("x-tenant", "other")]), Ok(None));
    }
}
