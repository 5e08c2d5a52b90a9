//! The budget of a guest call: how many host calls it makes, and how many bytes they carry.
//!
//! A node, a web handler and each tool that they call has a budget of its own. The node or the web
//! handler shares another one with all tools below it, because tools call tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use wattle_graph::failure::{Failure, code};

use crate::caller_id::CallerId;
use crate::fair_share::Lease;
use crate::gate::unwind::Unwind;
use crate::limit;

/// What a guest call has used of its budget.
pub(crate) struct CallBudget {
    /// The kind of guest, for messages.
    guest: &'static str,
    calls: AtomicU64,
    bytes: AtomicU64,
    total: Arc<TotalUsage>,
    /// The guest instance, if the guest belongs to a web handler and these are limited.
    instance: Option<Lease<CallerId>>,
}

/// What a node or a web handler has used together with all tools below it.
struct TotalUsage {
    /// The kind of guest, for messages.
    guest: &'static str,
    calls: AtomicU64,
    bytes: AtomicU64,
    blobs: AtomicU64,
    emitted: AtomicU64,
}

impl Default for CallBudget {
    /// Creates the budget of a node.
    fn default() -> Self {
        Self::of("node")
    }
}

impl CallBudget {
    fn of(guest: &'static str) -> Self {
        let zero = AtomicU64::default;
        let total =
            TotalUsage { guest, calls: zero(), bytes: zero(), blobs: zero(), emitted: zero() };
        Self { guest, calls: zero(), bytes: zero(), total: Arc::new(total), instance: None }
    }

    /// Creates the budget of a web handler.
    pub(crate) fn for_handler(instance: Option<Lease<CallerId>>) -> Self {
        Self { instance, ..Self::of("web handler") }
    }

    /// Creates the budget of a tool that a task calls.
    pub(crate) fn for_tool(&self) -> Self {
        let (calls, bytes) = (AtomicU64::default(), AtomicU64::default());
        Self { guest: "tool", calls, bytes, total: self.total.clone(), instance: None }
    }

    /// Creates the budget of a tool that a web handler calls. It takes one more guest instance.
    ///
    /// # Errors
    ///
    /// `unavailable` if the caller's web handlers hold as many instances as they may.
    pub(crate) fn for_handler_tool(&self) -> Result<Self, Failure> {
        let instance = self.instance.as_ref().map(Lease::another).transpose();
        let instance = instance.map_err(|_full| handlers_full())?;
        Ok(Self { instance, ..self.for_tool() })
    }

    /// Starts again, for the next attempt of a task.
    pub(crate) fn reset(&self) {
        let total = &*self.total;
        let own = [&self.calls, &self.bytes];
        let all = [&total.calls, &total.bytes, &total.blobs, &total.emitted];
        for counter in own.into_iter().chain(all) {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Charges host calls.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the guest makes more than `allowed` calls, or too many together with
    /// its tools.
    pub(crate) fn charge_calls(&self, count: u32, allowed: u32) -> Result<(), Unwind> {
        let (count, allowed) = (u64::from(count), u64::from(allowed));
        if !charge(&self.calls, count, allowed) {
            let text = format!(
                "the {} made more than {allowed} host calls; raise `host_calls` in its grant if \
                 that is right",
                self.guest
            );
            return Err(exceeded("host_calls", allowed, text));
        }
        let allowed = limit::TASK_HOST_CALLS;
        if charge(&self.total.calls, count, allowed) {
            return Ok(());
        }
        let guest = self.total.guest;
        let text = format!("the {guest} and its tools made more than {allowed} host calls");
        Err(exceeded("task_host_calls", allowed, text))
    }

    /// Charges bytes that pass the gate.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the host calls of the guest carry more than `allowed` bytes, or too
    /// many together with those of its tools.
    pub(crate) fn charge_bytes(&self, bytes: u64, allowed: u64) -> Result<(), Unwind> {
        if !charge(&self.bytes, bytes, allowed) {
            let text = format!(
                "the {}'s host calls carried more than {allowed} bytes; put large data into blobs",
                self.guest
            );
            return Err(exceeded("host_call_bytes", allowed, text));
        }
        let allowed = limit::TASK_HOST_CALL_BYTES;
        if charge(&self.total.bytes, bytes, allowed) {
            return Ok(());
        }
        let guest = self.total.guest;
        let text = format!(
            "the host calls of the {guest} and its tools carried more than {allowed} bytes"
        );
        Err(exceeded("task_host_call_bytes", allowed, text))
    }

    /// Charges bytes of blobs that the guest stores.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the budget is exceeded.
    pub(crate) fn charge_blob(&self, bytes: u64) -> Result<(), Unwind> {
        let allowed = limit::TASK_BLOB_BYTES;
        if charge(&self.total.blobs, bytes, allowed) {
            return Ok(());
        }
        let guest = self.total.guest;
        let text =
            format!("the {guest} and its tools put blobs of more than {allowed} bytes; keep less");
        Err(exceeded("task_blob_bytes", allowed, text))
    }

    /// Charges one emitted event.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the budget is exceeded.
    pub(crate) fn charge_emission(&self) -> Result<(), Unwind> {
        let allowed = u64::from(limit::EMITTED_EVENTS);
        if charge(&self.total.emitted, 1, allowed) {
            return Ok(());
        }
        let text = format!("the {} emitted more than {allowed} events", self.total.guest);
        Err(exceeded("emitted_events", allowed, text))
    }
}

/// Returns the failure if web handlers hold as many guest instances as they may.
pub(crate) fn handlers_full() -> Failure {
    let text = "web handlers of this caller and the tools that they call hold as many guest \
                instances as they may; try again when some have ended, or raise `limits.handlers`";
    let details = json!({ "limit": "handlers" });
    Failure::new(code::UNAVAILABLE, text).retryable().with_details(details)
}

/// Adds to a counter. Returns true if the counter is still within its limit.
fn charge(counter: &AtomicU64, amount: u64, allowed: u64) -> bool {
    counter.fetch_add(amount, Ordering::Relaxed).saturating_add(amount) <= allowed
}

fn exceeded(limit: &str, allowed: u64, text: String) -> Unwind {
    let details = json!({ "limit": limit, "allowed": allowed });
    Unwind::Limit(Failure::new(code::LIMIT, text).with_details(details))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_of(charged: Result<(), Unwind>) -> String {
        match charged {
            Err(Unwind::Limit(failure)) => failure.details.unwrap()["limit"].to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tool_has_calls_of_its_own_and_shares_those_of_its_handler() {
        let handler = CallBudget::for_handler(None);
        handler.charge_calls(10, 10).unwrap();
        assert_eq!(limit_of(handler.charge_calls(1, 10)), "\"host_calls\"");
        let most = u32::try_from(limit::TASK_HOST_CALLS).unwrap();
        let tool = handler.for_tool();
        tool.charge_calls(10, 10).unwrap();
        assert_eq!(limit_of(tool.for_tool().charge_calls(most, most)), "\"task_host_calls\"");
    }

    #[test]
    fn reset_budget_is_unused() {
        let budget = CallBudget::default();
        budget.charge_calls(3, 3).unwrap();
        budget.charge_blob(limit::TASK_BLOB_BYTES).unwrap();
        budget.reset();
        budget.charge_calls(3, 3).unwrap();
        budget.charge_blob(limit::TASK_BLOB_BYTES).unwrap();
        assert_eq!(limit_of(budget.charge_blob(1)), "\"task_blob_bytes\"");
    }
}
