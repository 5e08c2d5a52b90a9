//! Extractors: the caller of a request, its body and its path.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use wattle_api::guard::ResponseReservation;
use wattle_api::native::request_principal::RequestPrincipal;
use wattle_api::native::tenant_scope::{RequestRole, TenantScope};
use wattle_api::{ApiConfig, body};
use wattle_graph::id::ThreadId;
use wattle_graph::principal::Principal;
use wattle_run::engine::Engine;
use wattle_run::ports::store::{ThreadHead, ThreadRecord};

use crate::error::ApiError;
use crate::wire::request::parse_within;

/// The tenant and the principal of a request, and the reservation for its response.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The tenant; `None` if the request names none.
    pub(crate) tenant: Option<String>,
    /// The principal that events record.
    pub(crate) principal: Option<Principal>,
    /// The reservation of the bytes of the response; `None` for a router without guards.
    pub(crate) response: Option<ResponseReservation>,
    /// True for the runs that the server creates for crons. Another host may create the same run at
    /// the same time.
    pub(crate) is_cron: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    Arc<ApiConfig>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let TenantScope { tenant } = TenantScope::from_request_parts(parts, state).await?;
        let RequestPrincipal(principal) =
            RequestPrincipal::from_request_parts(parts, state).await?;
        let response = parts.extensions.get().cloned();
        Ok(Self { tenant, principal, response, is_cron: false })
    }
}

impl Caller {
    /// Returns the caller for the runs of a tenant's crons.
    pub(crate) fn for_cron(tenant: Option<String>) -> Self {
        Self { tenant, principal: None, response: None, is_cron: true }
    }

    /// Finds a thread that the caller may access. Returns `None` if no such thread exists or if it
    /// has expired.
    ///
    /// # Errors
    ///
    /// 422 for an id that is neither the id of a thread nor a UUID.
    pub(crate) async fn find_thread(
        &self,
        engine: &Engine,
        id: &str,
    ) -> Result<Option<ThreadRecord>, ApiError> {
        let head = engine.visible_thread(&parse_thread_id(id)?).await?;
        let thread = self.accessible(id, head)?;
        if let Some(record) = &thread {
            // The code of the thread determines how messages are encoded.
            engine.load_code(record).await;
        }
        Ok(thread)
    }

    /// Finds a thread that the caller may access, also one that has expired and is not deleted yet.
    ///
    /// # Errors
    ///
    /// 422 for an id that is neither the id of a thread nor a UUID.
    pub(crate) async fn find_stored_thread(
        &self,
        engine: &Engine,
        id: &str,
    ) -> Result<Option<ThreadRecord>, ApiError> {
        let head = engine.ports().store.thread(&parse_thread_id(id)?).await?;
        self.accessible(id, head)
    }

    /// Returns the record of a thread if the caller may access it.
    fn accessible(
        &self,
        id: &str,
        head: Option<ThreadHead>,
    ) -> Result<Option<ThreadRecord>, ApiError> {
        let thread = head.map(|head| head.record).filter(|record| self.can_access(record));
        if thread.is_none() {
            parse_uuid("thread", id)?;
        }
        Ok(thread)
    }

    /// Returns a thread that the caller may access.
    ///
    /// # Errors
    ///
    /// 404 if no such thread exists; otherwise the errors of [`Caller::find_thread`].
    pub(crate) async fn thread(&self, engine: &Engine, id: &str) -> Result<ThreadRecord, ApiError> {
        let found = self.find_thread(engine, id).await?;
        found.ok_or_else(|| ApiError::missing("thread", id))
    }

    /// Returns whether the caller may access a thread.
    pub(crate) fn can_access(&self, record: &ThreadRecord) -> bool {
        self.tenant.is_none() || record.tenant == self.tenant
    }
}

/// Whether a request comes from the operator and does not act for a tenant.
pub(crate) struct IsOperator(pub(crate) bool);

impl<S: Send + Sync> FromRequestParts<S> for IsOperator
where
    Arc<ApiConfig>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let role = RequestRole::from_request_parts(parts, state).await?;
        Ok(Self(role.is_operator))
    }
}

/// Parses the id of a thread.
///
/// # Errors
///
/// 422 if the string is not the id of a thread.
pub(crate) fn parse_thread_id(id: &str) -> Result<ThreadId, ApiError> {
    ThreadId::new(id).map_err(|error| ApiError::unprocessable(error.to_string()))
}

/// Parses a UUID.
///
/// # Errors
///
/// 422 if the string is not a UUID.
pub(crate) fn parse_uuid(what: &str, text: &str) -> Result<Uuid, ApiError> {
    let invalid = |_| ApiError::unprocessable(format!("the {what} id `{text}` is not a UUID"));
    Uuid::try_parse(text).map_err(invalid)
}

/// A JSON body. An empty body counts as an empty object.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequest<S> for JsonBody<T>
where
    Arc<ApiConfig>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let config = Arc::<ApiConfig>::from_ref(state);
        let body = body::read(request, config.body_limit_bytes).await?;
        let read = body.parse(|bytes, budget| parse_within(bytes, budget).map_err(ApiError::from));
        read.await.map(Self)
    }
}

/// The parameters of the path.
pub(crate) struct PathParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(params)) => Ok(Self(params)),
            Err(rejection) => Err(ApiError::unprocessable(rejection.body_text())),
        }
    }
}
