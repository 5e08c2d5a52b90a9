//! API keys that are created and revoked while the host runs.
//!
//! The operator creates keys for any tenant and keys without a tenant. A created key of a tenant
//! with the scope `admin` can create keys of that tenant, with limits no wider than its own. Keys
//! in `[tenants]` of the configuration cannot create keys, because the created keys would stay
//! valid after the operator removes the configured one.
//!
//! A revoked key can have descendants, the keys that it created. After a rotation they stay valid;
//! after a leak they must be revoked, too. A request must ask for this; otherwise the response
//! lists the descendants that remain.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::code;

use crate::body::JsonBody;
use crate::document::key::{KeyDocument, MadeKeyDocument, NewKeyDocument, RevokedKeysDocument};
use crate::guard::holder::Holder;
use crate::guard::kept::WantedKey;
use crate::guard::key;
use crate::guard::keyring::{Revocation, Revoked};
use crate::guard::scope::KeyScope;
use crate::native::scope::{Operator, named_tenant, not_the_tenants};
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// The permission to manage keys, of all tenants or of one.
pub struct KeyKeeper {
    /// Tenant whose keys the caller can manage; `None` for all keys.
    tenant: Option<String>,
    holder: Option<Holder>,
}

impl KeyKeeper {
    fn of(state: &ApiState, parts: &Parts) -> Result<Self, Problem> {
        let Parts { headers, extensions, .. } = parts;
        if extensions.get::<Operator>().is_some() {
            return Ok(Self { tenant: None, holder: None });
        }
        let tenant = named_tenant(&state.config, headers, extensions)?;
        let holder = Holder::of(&state.config, headers, extensions);
        let may = match (&holder, &tenant) {
            (None, named) => named.is_none(),
            (Some(holder), None) => holder.is_operators(),
            // The key is an operator key on behalf of a tenant, or a created key of the tenant.
            (Some(holder), Some(_)) => {
                holder.opens(KeyScope::Admin)
                    && (holder.is_operators() || holder.record().is_some())
            }
        };
        if may {
            return Ok(Self { tenant, holder });
        }
        Err(not_the_tenants("managing keys", &tenant.unwrap_or_default()))
    }

    /// Returns the tenant of a new key.
    fn tenant_of(&self, wanted: &WantedKey) -> Result<Option<String>, Problem> {
        match (&self.tenant, &wanted.tenant) {
            (Some(own), Some(named)) if own != named => {
                let detail = format!("the request does not belong to tenant `{named}`");
                Err(Problem::new(code::DENIED, detail))
            }
            (own, named) => Ok(named.clone().or_else(|| own.clone())),
        }
    }
}

impl FromRequestParts<ApiState> for KeyKeeper {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        Self::of(state, parts).map_err(|problem| problem.at(parts.uri.path()))
    }
}

/// Creates a key and returns it. The key is shown only in this response. Requires an operator key,
/// or a tenant's key with the scope `admin`.
#[utoipa::path(post, path = "/api/v1/keys",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "keys",
    request_body = NewKeyDocument,
    responses(
        (status = 201, body = MadeKeyDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn make_key(
    State(state): State<ApiState>,
    keeper: KeyKeeper,
    JsonBody(new): JsonBody<NewKeyDocument>,
) -> Result<(StatusCode, Json<MadeKeyDocument>), Problem> {
    let wanted = WantedKey::from(new);
    let wanted = WantedKey { tenant: keeper.tenant_of(&wanted)?, ..wanted };
    let maker = keeper.holder.as_ref().and_then(Holder::record);
    let (record, key) = state.admission.keyring.make(state.engine.ports(), wanted, maker).await?;
    let known = KeyDocument::new(record, None);
    Ok((StatusCode::CREATED, Json(MadeKeyDocument { known, key })))
}

/// Lists the created keys, oldest first, including expired ones.
#[utoipa::path(get, path = "/api/v1/keys",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "control" }))), tag = "keys",
    responses(
        (status = 200, body = Vec<KeyDocument>),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_keys(
    State(state): State<ApiState>,
    keeper: KeyKeeper,
) -> Result<Json<Vec<KeyDocument>>, Problem> {
    let ports = state.engine.ports();
    let keys = state.admission.keyring.list(ports, keeper.tenant.as_deref()).await?;
    let keys = keys.into_iter().map(|(record, used_ms)| KeyDocument::new(record, used_ms));
    Ok(Json(keys.collect()))
}

/// Options of a revocation.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevokeFilter {
    /// True to also revoke all descendants of the key. They are found even if the key itself was
    /// revoked earlier.
    made: bool,
    /// True to revoke the last active key. Every caller that reaches the host is accepted
    /// afterwards.
    open: bool,
}

/// Revokes a key. After the response this host rejects the key, and other hosts of the same
/// database do so within two seconds. Open streams of the key end.
#[utoipa::path(delete, path = "/api/v1/keys/{key}",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "control" }))), tag = "keys",
    params(("key" = String, Path, description = "id of the key"), RevokeFilter),
    responses(
        (status = 200, body = RevokedKeysDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json",
            description = "the key is the last active one")))]
pub async fn revoke_key(
    State(state): State<ApiState>,
    keeper: KeyKeeper,
    Path(id): Path<String>,
    filter: Result<Query<RevokeFilter>, QueryRejection>,
) -> Result<Json<RevokedKeysDocument>, Problem> {
    let Query(RevokeFilter { made, open }) = filter.map_err(invalid_query)?;
    let tenant = keeper.tenant.as_deref();
    // Another host of the database may have no configured keys, so a tenant must never revoke the
    // last key.
    let may_be_last = tenant.is_none() && (open || key::is_configured(&state.config));
    let wanted = Revocation { id: &id, tenant, with_made: made, may_be_last };
    let Some(done) = state.admission.keyring.revoke(state.engine.ports(), wanted).await? else {
        let hint = "it was revoked or never existed; list keys with `GET /api/v1/keys`";
        return Err(Problem::not_found("key", &id, hint));
    };
    let Revoked { revoked, left } = done;
    Ok(Json(RevokedKeysDocument { revoked, left }))
}
