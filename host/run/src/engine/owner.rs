//! Checks the owner of a thread, and that a thread is not in use by others.

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, ThreadId};

use super::thread_not_found;
use crate::ports::store::{ThreadHead, ThreadRecord};

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

/// Rejects an existing thread with `conflict` if a run is to create the thread `new`. A thread that
/// is unbound and of the same tenant is accepted: a host created it for the same run and ended
/// before it stored the run.
pub(super) fn check_new_thread(
    head: &ThreadHead,
    new: Option<&ThreadRecord>,
) -> Result<(), Failure> {
    let record = &head.record;
    match new {
        Some(new) if !record.is_unbound() || record.tenant != new.tenant => {
            Err(thread_exists(&record.id))
        }
        _ => Ok(()),
    }
}

/// Returns the failure of a new thread whose id is taken.
pub(super) fn thread_exists(thread: &ThreadId) -> Failure {
    let text = format!("there is a thread `{thread}` already; choose another id");
    Failure::new(code::CONFLICT, text).with_details(json!({ "thread": thread }))
}
