//! The principal of a request, which events record.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use wattle_graph::principal::Principal;

use crate::guard::authenticated_key::AuthenticatedKey;
use crate::guard::user::User;
use crate::native::scope::{Operator, tenant};
use crate::problem::Problem;
use crate::state::{ApiConfig, ApiState};

/// The principal of a request; `None` if the request names neither key, tenant nor user. For a
/// request with [`Operator`], it is the [`Principal`] in the extensions of the request.
#[derive(Clone, Debug)]
pub struct AskedBy(pub Option<Principal>);

impl FromRequestParts<ApiState> for AskedBy {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let Parts { headers, extensions, uri, .. } = parts;
        let asked_by = asked_by(&state.config, headers, extensions);
        asked_by.map(Self).map_err(|problem| problem.at(uri.path()))
    }
}

/// Returns the principal of a request.
///
/// # Errors
///
/// Those of [`tenant`].
pub(crate) fn asked_by(
    config: &ApiConfig,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<Principal>, Problem> {
    if extensions.get::<Operator>().is_some() {
        return Ok(extensions.get::<Principal>().cloned());
    }
    let principal = Principal {
        key: AuthenticatedKey::from_request(config, headers, extensions).map(|key| key.public_id()),
        tenant: tenant(config, headers, extensions)?,
        user: extensions.get::<User>().map(|user| user.0.clone()),
        app: None,
        local: false,
    };
    Ok(principal.known())
}
