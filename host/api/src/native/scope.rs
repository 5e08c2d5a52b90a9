//! What a request may see: its tenant, and threads and runs that are its own.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::guard::holder::Holder;
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
        let tenant = match parts.extensions.get::<Operator>() {
            // Nobody stands between the operator and this process who could name a tenant.
            Some(Operator) => Ok(state.config.default_tenant.clone()),
            None => tenant(&state.config, &parts.headers, &parts.extensions),
        };
        tenant.map(|tenant| Self { tenant }).map_err(|problem| problem.at(parts.uri.path()))
    }
}

/// Put among the extensions of a request, says that it is the operator's own: for callers in the
/// same process. No request that arrives by HTTP has it.
#[derive(Clone, Copy, Debug)]
pub struct Operator;

/// On whose authority a request comes to what the operator may reach beyond tenants.
#[derive(Clone, Debug)]
pub struct Authority {
    /// The tenant for whom it is if it does not say otherwise.
    pub tenant: Option<String>,
    /// Whether it is the operator's: it comes from the same process, or there are neither keys nor
    /// tenants, or its key is one of the operator's and it names no tenant.
    pub is_operator: bool,
}

impl Authority {
    fn of(state: &ApiState, parts: &Parts) -> Result<Self, Problem> {
        let Parts { headers, extensions, .. } = parts;
        let config = &state.config;
        let holder = Holder::of(config, headers, extensions);
        let has_key = || -> Result<bool, Problem> {
            let is_operators = holder.as_ref().is_some_and(Holder::is_operators);
            Ok(is_operators && named_tenant(config, headers, extensions)?.is_none())
        };
        if extensions.get::<Operator>().is_some() || has_key()? {
            return Ok(Self { tenant: config.default_tenant.clone(), is_operator: true });
        }
        let tenant = tenant(config, headers, extensions)?;
        let may_be = holder.as_ref().is_none_or(Holder::is_operators);
        Ok(Self { is_operator: may_be && tenant.is_none(), tenant })
    }
}

impl FromRequestParts<ApiState> for Authority {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        Self::of(state, parts).map_err(|problem| problem.at(parts.uri.path()))
    }
}

/// A request for what is the host's and of no tenant, such as names of secrets in grants or paths of
/// files: one that names a tenant, by key or header, may not see it, nor one whose key is none of
/// the operator's.
#[derive(Clone, Copy, Debug)]
pub struct OfHost;

impl FromRequestParts<ApiState> for OfHost {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        if parts.extensions.get::<Operator>().is_some() {
            return Ok(Self);
        }
        let (path, headers, extensions) = (parts.uri.path(), &parts.headers, &parts.extensions);
        let named = named_tenant(&state.config, headers, extensions);
        let named = named.map_err(|problem| problem.at(path))?;
        let holder = Holder::of(&state.config, headers, extensions);
        match named {
            None if holder.is_none_or(|holder| holder.is_operators()) => Ok(Self),
            named => Err(not_the_tenants("this", &named.unwrap_or_default()).at(path)),
        }
    }
}

/// The refusal of what is the operator's. The tenant is empty if the request names none and its key
/// is not the operator's.
pub fn not_the_tenants(what: &str, tenant: &str) -> Problem {
    let whose = if tenant.is_empty() {
        "and the key does not have the scope `admin`".to_owned()
    } else {
        format!("not the tenant's `{tenant}`")
    };
    let detail = format!(
        "{what} is the operator's, {whose}; send a key of `[auth]`, or one with the scope `admin` \
         and no tenant, and name no tenant"
    );
    Problem::new(code::DENIED, detail)
}

/// Characters of a tenant's name.
const TENANT_CHARS: usize = 64;

/// The tenant that a request itself names, by key or header.
///
/// # Errors
///
/// `denied` and `invalid` as of [`tenant`].
pub fn named_tenant(
    config: &ApiConfig,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<String>, Problem> {
    let named = config.tenant_header.as_ref().and_then(|name| headers.get(name));
    let named = named.map(|value| value.to_str().unwrap_or("?")).filter(|name| !name.is_empty());
    named.map(check_tenant).transpose()?;
    let holder = Holder::of(config, headers, extensions);
    match (holder.as_ref().and_then(Holder::tenant), named) {
        (Some(own), Some(named)) if own != named => Err(Problem::new(
            code::DENIED,
            format!("the key belongs to another tenant than `{named}`"),
        )),
        (own, named) => Ok(own.or(named).map(str::to_owned)),
    }
}

/// The tenant of a request: that of its key, else the one that the header names, else the default.
///
/// # Errors
///
/// `unauthorized` if there is a header for tenants and the request names none, `denied` if it names
/// another than its key stands for, `invalid` for a name that is none.
pub fn tenant(
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
            Err(Problem::new(api_code::UNAUTHORIZED, detail))
        }
        (None, None) => Ok(None),
    }
}

/// Whether a text can be a tenant's name.
///
/// # Errors
///
/// `invalid`.
pub fn check_tenant(name: &str) -> Result<(), Problem> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    // Alone in a path, which links of blobs have, dots mean something else.
    let is_dots = [".", ".."].contains(&name);
    let is_right = !name.is_empty() && name.len() <= TENANT_CHARS && !is_dots;
    if is_right && name.chars().all(is_plain) {
        return Ok(());
    }
    let detail = format!(
        "a tenant's name has 1 to {TENANT_CHARS} ASCII letters, digits or `-`, `_`, `.`, `@`, and \
         is not `.` or `..`"
    );
    Err(Problem::new(code::INVALID, detail))
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

    /// A thread that an app's handler may hand over to: the same that its `runs` interface shows.
    ///
    /// # Errors
    ///
    /// `not-found` if there is none, or if it belongs to another app or tenant.
    pub async fn thread_of(
        &self,
        state: &ApiState,
        app: &AppName,
        thread: &ThreadId,
    ) -> Result<ThreadRecord, Problem> {
        let head = state.engine.ports().store.thread(thread).await?;
        let record = head.map(|head| head.record);
        record.filter(|record| record.is_of(app, self.tenant.as_deref())).ok_or_else(|| {
            let hint = format!("app `{app}` has none of that name here, or it has expired");
            Problem::not_found("thread", thread.as_str(), &hint)
        })
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
        match self.thread(state, record.thread.as_str()).await {
            Err(problem) if problem.code == code::NOT_FOUND => Err(missing()),
            seen => seen.map(|_thread| record),
        }
    }
}

pub(super) fn parse_thread(id: &str) -> Result<ThreadId, Problem> {
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
        tenant(config, &map, &Extensions::new()).map_err(|problem| problem.code.clone())
    }

    #[test]
    fn the_key_goes_before_the_header_and_the_header_before_the_default() {
        let key = (ApiConfig::key("k-acme"), "acme".to_owned());
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
    fn without_tenants_the_header_means_nothing() {
        assert_eq!(check(&ApiConfig::default(), &[("x-tenant", "other")]), Ok(None));
    }
}
