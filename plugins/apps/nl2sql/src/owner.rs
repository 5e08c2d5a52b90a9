//! The owner of a session: an admin, and on a host with tenants an admin of one tenant.

use wattle_plugin::prelude::{Context, Deserialize, Failure, Request, Serialize};
use wattle_plugin::web::{refuse, status};

use crate::setting;

/// Header with the id of the admin. It does not authenticate the caller: a proxy in front must set
/// it.
pub(crate) const ADMIN_HEADER: &str = "x-admin-id";

/// An admin of a tenant. The tenant is empty on a host without tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) tenant: String,
    pub(crate) admin_id: i64,
}

/// The run context.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunContext {
    pub(crate) admin_id: i64,
}

impl Owner {
    /// Returns the owner of a request.
    pub(crate) fn of_request(request: &Request) -> Result<Self, Failure> {
        let admin_id = match request.header(ADMIN_HEADER).map(str::trim) {
            None | Some("") => setting::default_admin()?,
            Some(text) => text.parse().map_err(|_| {
                refuse(status::BAD_REQUEST, format!("请求头 {ADMIN_HEADER} 必须是整数"))
            })?,
        };
        Ok(Self { tenant: request.tenant.clone().unwrap_or_default(), admin_id })
    }

    /// Returns the owner of a run. A run that the app's endpoints did not start has no context and
    /// belongs to the default admin.
    pub(crate) fn of_run(context: &Context) -> Result<Self, Failure> {
        let admin_id = match context.run_context::<RunContext>() {
            Ok(run) => run.admin_id,
            Err(_) => setting::default_admin()?,
        };
        Ok(Self { tenant: context.tenant.clone().unwrap_or_default(), admin_id })
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Request, json};

    use super::{ADMIN_HEADER, Owner};
    use crate::testing::host;

    #[test]
    fn header_names_the_admin() {
        host().run(|| {
            let request = Request::new("GET", "/").with_header(ADMIN_HEADER, " 7 ");
            assert_eq!(Owner::of_request(&request).unwrap().admin_id, 7);
            assert_eq!(Owner::of_request(&Request::new("GET", "/")).unwrap().admin_id, 1);
            let request = Request::new("GET", "/").with_header(ADMIN_HEADER, "root");
            assert_eq!(Owner::of_request(&request).unwrap_err().status(), Some(400));
        });
    }

    #[test]
    fn run_context_names_the_admin() {
        host().run(|| {
            let context = Context { context: json!({"admin_id": 9}), ..Context::default() };
            assert_eq!(Owner::of_run(&context).unwrap().admin_id, 9);
            assert_eq!(Owner::of_run(&Context::default()).unwrap().admin_id, 1);
        });
    }
}
