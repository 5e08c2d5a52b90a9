//! API keys that are created and revoked while the host runs.
//!
//! The operator creates keys for any tenant and keys without a tenant. A created key of a tenant
//! with the scope `admin` can create keys of that tenant, with limits no wider than its own. Keys
//! in `[tenants]` of the configuration cannot create keys, because the created keys would stay
//! valid after the operator removes the configured one.
//!
//! A revoked key can have descendants, the keys that it created. After a rotation, the descendants
//! stay valid. After a leak, they must also be revoked, and the request must ask for this.
//! Otherwise, the response lists the descendants that remain.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRef, FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::code;
use wattle_run::engine::Engine;

use crate::body::JsonBody;
use crate::config::ApiConfig;
use crate::document::key::{
    CreatedKeyDocument, KeyDocument, KeyNameDocument, NewKeyDocument, RevokedKeysDocument,
};
use crate::guard::authenticated_key::AuthenticatedKey;
use crate::guard::key_record::NewKey;
use crate::guard::keyring::{Keyring, Revocation, Revoked};
use crate::guard::request_key;
use crate::guard::scope::KeyScope;
use crate::native::tenant_scope::{Operator, RequestRole, named_tenant, operator_only_problem};
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};

/// The permission to manage keys, of all tenants or of one.
pub struct KeyAdmin {
    /// Tenant whose keys the caller can manage; `None` for all keys.
    tenant: Option<String>,
    /// Key of the request; `None` for a caller without a key.
    key: Option<AuthenticatedKey>,
}

impl KeyAdmin {
    fn from_parts(config: &ApiConfig, parts: &Parts) -> Result<Self, Problem> {
        let Parts { headers, extensions, .. } = parts;
        if extensions.get::<Operator>().is_some() {
            return Ok(Self { tenant: None, key: None });
        }
        let tenant = named_tenant(config, headers, extensions)?;
        let key = request_key::find(config, headers, extensions);
        let is_allowed = match (&key, &tenant) {
            (None, named) => named.is_none(),
            (Some(key), None) => key.is_operator_key(),
            // The key is an operator key on behalf of a tenant, or a created key of the tenant.
            (Some(key), Some(_)) => {
                key.allows(KeyScope::Admin) && (key.is_operator_key() || key.record().is_some())
            }
        };
        if is_allowed {
            return Ok(Self { tenant, key });
        }
        Err(operator_only_problem("managing keys", &tenant.unwrap_or_default()))
    }

    /// Returns the tenant of a new key.
    fn tenant_of(&self, new: &NewKey) -> Result<Option<String>, Problem> {
        match (&self.tenant, &new.tenant) {
            (Some(own), Some(named)) if own != named => {
                let detail = format!("the request does not belong to tenant `{named}`");
                Err(Problem::new(code::DENIED, detail))
            }
            (own, named) => Ok(named.clone().or_else(|| own.clone())),
        }
    }
}

impl<S> FromRequestParts<S> for KeyAdmin
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

/// Creates a key and returns it. The key is shown only in this response. Requires an operator key,
/// or a tenant's key with the scope `admin`.
#[utoipa::path(post, path = "/api/v1/keys", operation_id = "make_key",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "keys",
    request_body = NewKeyDocument,
    responses(
        (status = 201, body = CreatedKeyDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn create_key(
    State(engine): State<Engine>,
    State(keyring): State<Arc<Keyring>>,
    admin: KeyAdmin,
    JsonBody(document): JsonBody<NewKeyDocument>,
) -> Result<(StatusCode, Json<CreatedKeyDocument>), Problem> {
    let new = NewKey::from(document);
    let new = NewKey { tenant: admin.tenant_of(&new)?, ..new };
    let creator = admin.key.as_ref().and_then(AuthenticatedKey::record);
    let (record, key) = keyring.create(engine.ports(), new, creator).await?;
    let known = KeyDocument::new(record, None);
    Ok((StatusCode::CREATED, Json(CreatedKeyDocument { known, key })))
}

/// Lists the created keys, oldest first, including expired keys.
#[utoipa::path(get, path = "/api/v1/keys",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "control" }))), tag = "keys",
    responses(
        (status = 200, body = Vec<KeyDocument>),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn list_keys(
    State(engine): State<Engine>,
    State(keyring): State<Arc<Keyring>>,
    admin: KeyAdmin,
) -> Result<Json<Vec<KeyDocument>>, Problem> {
    let ports = engine.ports();
    let keys = keyring.list(ports, admin.tenant.as_deref()).await?;
    let keys = keys.into_iter().map(|(record, used_ms)| KeyDocument::new(record, used_ms));
    Ok(Json(keys.collect()))
}

/// Lists the names of the created keys by id, so that a client can show whose request an event
/// records. The operator sees all keys, any other request those of its tenant, or those without a
/// tenant if it has none.
#[utoipa::path(get, path = "/api/v1/key-names",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "keys",
    responses(
        (status = 200, body = Vec<KeyNameDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn list_key_names(
    State(engine): State<Engine>,
    State(keyring): State<Arc<Keyring>>,
    role: RequestRole,
) -> Result<Json<Vec<KeyNameDocument>>, Problem> {
    let keys = keyring.keys(engine.ports()).await?;
    let names = keys.names(role.is_operator, role.tenant.as_deref()).into_iter();
    let names = names.map(|(id, name)| KeyNameDocument { id: id.into(), name: name.into() });
    Ok(Json(names.collect()))
}

/// Options of a revocation.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevokeQuery {
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
    params(("key" = String, Path, description = "id of the key"), RevokeQuery),
    responses(
        (status = 200, body = RevokedKeysDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json",
            description = "the key is the last active one")))]
pub(crate) async fn revoke_key(
    State(engine): State<Engine>,
    State(config): State<Arc<ApiConfig>>,
    State(keyring): State<Arc<Keyring>>,
    admin: KeyAdmin,
    Path(id): Path<String>,
    query: Result<Query<RevokeQuery>, QueryRejection>,
) -> Result<Json<RevokedKeysDocument>, Problem> {
    let Query(RevokeQuery { made, open }) = query.map_err(invalid_query)?;
    let tenant = admin.tenant.as_deref();
    // Another host of the database may have no configured keys, so a tenant must never revoke the
    // last key.
    let allow_last = tenant.is_none() && (open || request_key::requires_key(&config));
    let revocation = Revocation { id: &id, tenant, with_descendants: made, allow_last };
    let Some(revoked) = keyring.revoke(engine.ports(), revocation).await? else {
        let hint = "it was revoked or never existed; list keys with `GET /api/v1/keys`";
        return Err(Problem::not_found("key", &id, hint));
    };
    let Revoked { revoked, remaining } = revoked;
    Ok(Json(RevokedKeysDocument { revoked, left: remaining }))
}
