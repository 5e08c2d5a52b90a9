//! The principal of a request, which events record.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use wattle_graph::principal::Principal;

use crate::config::ApiConfig;
use crate::guard::request_key;
use crate::guard::user::User;
use crate::native::tenant_scope::{Operator, resolve_tenant};
use crate::problem::Problem;

/// The principal of a request; `None` if the request names neither key, tenant nor user. For a
/// request with [`Operator`], it is the [`Principal`] in the extensions of the request.
#[derive(Clone, Debug)]
pub struct RequestPrincipal(pub Option<Principal>);

impl<S> FromRequestParts<S> for RequestPrincipal
where
    Arc<ApiConfig>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let config = Arc::<ApiConfig>::from_ref(state);
        let Parts { headers, extensions, uri, .. } = parts;
        let principal = request_principal(&config, headers, extensions);
        principal.map(Self).map_err(|problem| problem.with_instance(uri.path()))
    }
}

/// Returns the principal of a request.
///
/// # Errors
///
/// The errors of [`resolve_tenant`].
pub(crate) fn request_principal(
    config: &ApiConfig,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<Principal>, Problem> {
    if extensions.get::<Operator>().is_some() {
        return Ok(extensions.get::<Principal>().cloned());
    }
    let principal = Principal {
        key: request_key::find(config, headers, extensions).map(|key| key.public_id()),
        tenant: resolve_tenant(config, headers, extensions)?,
        user: extensions.get::<User>().map(|user| user.0.clone()),
        app: None,
        local: false,
    };
    Ok(principal.known())
}
