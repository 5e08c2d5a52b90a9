//! Who asks, and which threads and runs that may be about.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use wattle_api::body;
use wattle_api::native::asked_by::AskedBy;
use wattle_api::native::scope::{Authority, Scope};
use wattle_graph::id::ThreadId;
use wattle_graph::principal::Principal;
use wattle_run::bulk::{in_bulk, is_long};
use wattle_run::ports::store::ThreadRecord;

use crate::agents::Agents;
use crate::fault::Fault;
use crate::wire::request::parse;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The tenant; `None` if there are none.
    pub(crate) tenant: Option<String>,
    /// Whom the events of what it does name.
    pub(crate) principal: Option<Principal>,
}

impl FromRequestParts<Agents> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, agents: &Agents) -> Result<Self, Fault> {
        let scope = Scope::from_request_parts(parts, agents.api()).await?;
        let AskedBy(principal) = AskedBy::from_request_parts(parts, agents.api()).await?;
        Ok(Self { tenant: scope.tenant, principal })
    }
}

impl Caller {
    /// Somebody of a tenant who asks through the server itself.
    pub(crate) fn of(tenant: Option<String>) -> Self {
        Self { tenant, principal: None }
    }

    /// A thread that it may see; `None` if there is none.
    ///
    /// # Errors
    ///
    /// 422 for an id that is no UUID and names nothing.
    pub(crate) async fn find_thread(
        &self,
        agents: &Agents,
        id: &str,
    ) -> Result<Option<ThreadRecord>, Fault> {
        let thread = ThreadId::new(id).map_err(|error| Fault::unprocessable(error.to_string()))?;
        let head = agents.engine().ports().store.thread(&thread).await?;
        let own = head.map(|head| head.record).filter(|record| self.may_see(record));
        if own.is_none() {
            uuid("thread", id)?;
        }
        Ok(own)
    }

    /// The same, if there must be one.
    ///
    /// # Errors
    ///
    /// 404 if there is none, or as of [`Caller::find_thread`].
    pub(crate) async fn thread(&self, agents: &Agents, id: &str) -> Result<ThreadRecord, Fault> {
        let found = self.find_thread(agents, id).await?;
        found.ok_or_else(|| Fault::missing("thread", id))
    }

    /// Whether a thread is the caller's to see.
    pub(crate) fn may_see(&self, record: &ThreadRecord) -> bool {
        self.tenant.is_none() || record.tenant == self.tenant
    }
}

/// Whether a request is the operator's and for no tenant in particular.
pub(crate) struct IsOperator(pub(crate) bool);

impl FromRequestParts<Agents> for IsOperator {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, agents: &Agents) -> Result<Self, Fault> {
        let authority = Authority::from_request_parts(parts, agents.api()).await?;
        Ok(Self(authority.is_operator))
    }
}

/// Reads a UUID.
///
/// # Errors
///
/// 422 if it is none.
pub(crate) fn uuid(what: &str, text: &str) -> Result<Uuid, Fault> {
    let refused = |_| Fault::unprocessable(format!("the {what} id `{text}` is no UUID"));
    Uuid::try_parse(text).map_err(refused)
}

/// A JSON body; an empty one is an empty object.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Agents> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, agents: &Agents) -> Result<Self, Fault> {
        let bytes = body::read(request, agents.api().config.body_limit_bytes).await?;
        Ok(Self(in_bulk(is_long(bytes.len()), || parse(&bytes))?))
    }
}

/// Parts of the path.
pub(crate) struct Place<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Agents> for Place<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, agents: &Agents) -> Result<Self, Fault> {
        match Path::from_request_parts(parts, agents).await {
            Ok(Path(place)) => Ok(Self(place)),
            Err(rejection) => Err(Fault::unprocessable(rejection.body_text())),
        }
    }
}
