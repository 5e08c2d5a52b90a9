//! Checks the owner of a thread.

use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;

use super::thread_not_found;
use crate::ports::store::ThreadHead;

/// Returns the failure of a missing thread if the thread belongs to another app or tenant.
pub(super) fn check_owner(
    head: &ThreadHead,
    app: Option<&AppName>,
    tenant: Option<&String>,
) -> Result<(), Failure> {
    let foreign_app = app.is_some_and(|app| *app != head.record.app);
    let foreign_tenant = head.record.tenant.is_some() && head.record.tenant.as_ref() != tenant;
    if foreign_app || foreign_tenant {
        return Err(thread_not_found(&head.record.id));
    }
    Ok(())
}
