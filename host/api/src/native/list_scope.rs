//! The tenant whose items a list over all threads contains.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use wattle_graph::failure::code;

use crate::config::ApiConfig;
use crate::guard::tenant_name::check_tenant;
use crate::native::tenant_scope::{RequestRole, TenantScope, operator_only_problem};
use crate::problem::Problem;

/// Value of the parameter `tenant` that selects the items of all tenants. No tenant can have this
/// name.
const ALL_TENANTS: &str = "*";

/// The access of a request to a list: the items of the tenant of the request. The operator can name
/// any tenant in the parameter `tenant`, and must name `*` for all tenants. If a proxy omits the
/// tenant of a request, the response is therefore never a list of all tenants.
#[derive(Clone, Debug)]
pub struct ListScope {
    role: RequestRole,
    /// The scope of a request whose parameters name no tenant.
    own: Result<TenantScope, Problem>,
}

impl<S> FromRequestParts<S> for ListScope
where
    Arc<ApiConfig>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let role = RequestRole::from_request_parts(parts, state).await?;
        let own = TenantScope::from_request_parts(parts, state).await;
        Ok(Self { role, own })
    }
}

impl ListScope {
    /// Returns the tenant whose items the list contains; `None` for the items of all tenants.
    /// `named` is the parameter `tenant`.
    ///
    /// # Errors
    ///
    /// `denied` if the request belongs to another tenant than the named one, `invalid` for an
    /// invalid name, `unauthorized` if the configuration requires a tenant and neither the
    /// parameter nor the request names one.
    pub fn tenant(self, named: Option<&str>) -> Result<Option<String>, Problem> {
        let Self { role, own } = self;
        let Some(named) = named else { return own.map(|scope| scope.tenant) };
        let sees_all = role.is_operator || role.tenant.is_none();
        if named == ALL_TENANTS {
            let tenant = role.tenant.unwrap_or_default();
            let refused = || operator_only_problem("a list of all tenants", &tenant);
            return if sees_all { Ok(None) } else { Err(refused()) };
        }
        check_tenant(named)?;
        if sees_all || role.tenant.as_deref() == Some(named) {
            return Ok(Some(named.to_owned()));
        }
        let detail = format!("the request does not belong to tenant `{named}`");
        Err(Problem::new(code::DENIED, detail))
    }
}

#[cfg(test)]
mod tests {
    use crate::problem::api_code;

    use super::*;

    fn tenant(
        role: (Option<&str>, bool),
        own: Result<Option<&str>, &str>,
        named: Option<&str>,
    ) -> Result<Option<String>, String> {
        let role = RequestRole { tenant: role.0.map(str::to_owned), is_operator: role.1 };
        let own = own.map(|tenant| TenantScope { tenant: tenant.map(str::to_owned) });
        let scope = ListScope { role, own: own.map_err(|code| Problem::new(code, "refused")) };
        scope.tenant(named).map_err(|problem| problem.0.code)
    }

    #[test]
    fn tenant_lists_only_its_own_items() {
        let of_acme = |named| tenant((Some("acme"), false), Ok(Some("acme")), named);
        assert_eq!(of_acme(None), Ok(Some("acme".to_owned())));
        assert_eq!(of_acme(Some("acme")), Ok(Some("acme".to_owned())));
        for other in ["globex", "*"] {
            assert_eq!(of_acme(Some(other)), Err(code::DENIED.to_owned()), "{other}");
        }
        assert_eq!(of_acme(Some("a/b")), Err(code::INVALID.to_owned()));
    }

    #[test]
    fn operator_names_the_tenant_or_all() {
        // A header for tenants is configured, and the request does not have it.
        let of_operator = |named| tenant((None, true), Err(api_code::UNAUTHORIZED), named);
        assert_eq!(of_operator(None), Err(api_code::UNAUTHORIZED.to_owned()));
        assert_eq!(of_operator(Some("acme")), Ok(Some("acme".to_owned())));
        assert_eq!(of_operator(Some("*")), Ok(None));
        // A default tenant is configured.
        let of_operator = |named| tenant((Some("default"), true), Ok(Some("default")), named);
        assert_eq!(of_operator(None), Ok(Some("default".to_owned())));
        assert_eq!(of_operator(Some("acme")), Ok(Some("acme".to_owned())));
        assert_eq!(of_operator(Some("*")), Ok(None));
    }

    #[test]
    fn request_without_a_tenant_lists_all_items() {
        let of_any = |named| tenant((None, false), Ok(None), named);
        assert_eq!(of_any(None), Ok(None));
        assert_eq!(of_any(Some("*")), Ok(None));
        assert_eq!(of_any(Some("acme")), Ok(Some("acme".to_owned())));
    }
}
