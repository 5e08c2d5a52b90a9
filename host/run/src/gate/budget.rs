//! The budget of a guest call: how many host calls the guest makes, how many bytes these calls
//! transfer, and how many messages the guest logs.
//!
//! Each node, web handler and tool has a budget. In addition, a node or a web handler shares a
//! second budget with all tools that it calls, directly or through other tools. Blobs, emitted
//! events, log messages and the weight of the journal count for the shared budget only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use wattle_graph::failure::{Failure, code};

use crate::caller_id::CallerId;
use crate::fair_share::Lease;
use crate::gate::unwind::Unwind;
use crate::grant::Grants;
use crate::limit;
use crate::ports::Caller;
use crate::run_memory::MemoryCharge;

/// The kind of guest whose calls a task makes, for messages.
const NODE: &str = "node";

/// What a guest call has used of its budget.
pub(crate) struct CallBudget {
    /// The kind of guest, for messages.
    guest: &'static str,
    calls: AtomicU64,
    bytes: AtomicU64,
    total: Arc<TotalUsage>,
    /// The guest instance, if the guest belongs to a web handler and the number of instances is
    /// limited.
    instance: Option<Lease<CallerId>>,
}

/// What a node or a web handler has used together with all tools below it.
struct TotalUsage {
    /// The kind of guest, for messages.
    guest: &'static str,
    calls: AtomicU64,
    bytes: AtomicU64,
    /// Weight of what the journal keeps.
    journal: AtomicU64,
    /// Memory of the journal in the run. A further attempt gets the results of the journal, so the
    /// memory stays until the task has ended. For a node that a client calls, that of its input.
    memory: MemoryCharge,
    /// Weight of what the journal kept at first, which counts as events with which the run
    /// continues.
    logged_bytes: u64,
    blobs: AtomicU64,
    emitted: AtomicU64,
    logs: Mutex<LogUsage>,
}

impl TotalUsage {
    fn of(guest: &'static str) -> Self {
        let zero = AtomicU64::default;
        Self {
            guest,
            calls: zero(),
            bytes: zero(),
            journal: zero(),
            memory: MemoryCharge::default(),
            logged_bytes: 0,
            blobs: zero(),
            emitted: zero(),
            logs: Mutex::default(),
        }
    }

    /// Locks the usage of log messages. No code that can panic runs under this lock.
    fn logs(&self) -> MutexGuard<'_, LogUsage> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log messages of a node or a web handler and of all tools below it.
#[derive(Default)]
struct LogUsage {
    messages: u64,
    bytes: u64,
    dropped: u64,
}

/// Decision about a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogAdmission {
    /// The message is within the budget.
    Granted,
    /// The message exceeds the budget and is dropped. No message was dropped before.
    FirstDropped,
    /// The message exceeds the budget and is dropped. Other messages were dropped before.
    Dropped,
}

impl Default for CallBudget {
    /// Creates the budget of a node.
    fn default() -> Self {
        Self::of(NODE)
    }
}

impl CallBudget {
    fn of(guest: &'static str) -> Self {
        Self::with_total(TotalUsage::of(guest))
    }

    fn with_total(total: TotalUsage) -> Self {
        let (calls, bytes) = (AtomicU64::default(), AtomicU64::default());
        Self { guest: total.guest, calls, bytes, total: Arc::new(total), instance: None }
    }

    /// Creates the budget of a task whose journal counts as `memory` of the run, except for the
    /// `logged_bytes` that it keeps at first.
    pub(crate) fn for_task(memory: MemoryCharge, logged_bytes: u64) -> Self {
        Self::with_total(TotalUsage { memory, logged_bytes, ..TotalUsage::of(NODE) })
    }

    /// Creates the budget of a web handler.
    pub(crate) fn for_handler(instance: Option<Lease<CallerId>>) -> Self {
        Self { instance, ..Self::of("web handler") }
    }

    /// Creates the budget of a guest that a client calls. `guest` is its kind, for messages.
    /// `memory` has room for the requests of its model calls.
    pub(crate) fn for_client(
        guest: &'static str,
        instance: Lease<CallerId>,
        memory: MemoryCharge,
    ) -> Self {
        let total = TotalUsage { memory, ..TotalUsage::of(guest) };
        Self { instance: Some(instance), ..Self::with_total(total) }
    }

    /// Creates the budget of a tool that a task calls.
    pub(crate) fn for_tool(&self) -> Self {
        let (calls, bytes) = (AtomicU64::default(), AtomicU64::default());
        Self { guest: "tool", calls, bytes, total: self.total.clone(), instance: None }
    }

    /// Creates the budget of a tool that a web handler calls. The tool takes one more guest
    /// instance.
    ///
    /// # Errors
    ///
    /// `unavailable` if the caller's web handlers hold as many instances as they may.
    pub(crate) fn for_handler_tool(&self) -> Result<Self, Failure> {
        let instance = self.instance.as_ref().map(Lease::another).transpose();
        let instance = instance.map_err(|_full| handlers_full())?;
        Ok(Self { instance, ..self.for_tool() })
    }

    /// Resets the budget for the next attempt of a task. The attempt logs its messages again, and
    /// the results that it gets from the journal count again.
    pub(crate) fn reset(&self) {
        let total = &*self.total;
        let own = [&self.calls, &self.bytes];
        let all = [&total.calls, &total.bytes, &total.journal, &total.blobs, &total.emitted];
        for counter in own.into_iter().chain(all) {
            counter.store(0, Ordering::Relaxed);
        }
        *total.logs() = LogUsage::default();
    }

    /// Charges host calls.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the guest makes more calls than `grants` allow its plugin, or if the
    /// guest and its tools together make too many calls.
    pub(crate) fn charge_calls(
        &self,
        count: u32,
        grants: &Grants,
        caller: &Caller,
    ) -> Result<(), Unwind> {
        let (count, allowed) = (u64::from(count), u64::from(grants.limits.host_calls));
        if !charge(&self.calls, count, allowed) {
            let raise = grants.raise_limit(&caller.app, &caller.plugin, "host_calls");
            let text = format!(
                "the {} made more than {allowed} host calls; {raise} if that is right",
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
    /// [`Unwind::Limit`] if the host calls of the guest transfer more than `allowed` bytes, or if
    /// the calls of the guest and its tools together transfer too many bytes.
    pub(crate) fn charge_bytes(&self, bytes: u64, allowed: u64) -> Result<(), Unwind> {
        if !charge(&self.bytes, bytes, allowed) {
            let text = format!(
                "the host calls of the {} transferred more than {allowed} bytes; put large data \
                 into blobs",
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
            "the host calls of the {guest} and its tools transferred more than {allowed} bytes"
        );
        Err(exceeded("task_host_call_bytes", allowed, text))
    }

    /// Charges the weight of what the journal of a task keeps, in bytes.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the journal keeps more than `allowed` bytes of the guest and its tools,
    /// or if the run does not get the memory.
    pub(crate) fn charge_journal(&self, weight: u64, allowed: u64) -> Result<(), Unwind> {
        let TotalUsage { guest, journal, memory, logged_bytes, .. } = &*self.total;
        let kept = journal.fetch_add(weight, Ordering::Relaxed).saturating_add(weight);
        if kept <= allowed {
            return memory.raise_to(kept.saturating_sub(*logged_bytes)).map_err(Unwind::Limit);
        }
        let text = format!(
            "the requests and results of the {guest} and its tools take more than {allowed} bytes \
             of memory in the journal; put large data into blobs"
        );
        Err(exceeded("task_journal_bytes", allowed, text))
    }

    /// Returns a charge of 0 bytes for what one call holds in the memory of the run while it is in
    /// progress. The charge counts nothing for a guest without a task, other than a node that a
    /// client calls and its tools.
    pub(crate) fn call_memory(&self) -> MemoryCharge {
        self.total.memory.another()
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

    /// Charges a log message of `bytes` bytes. Once a message was dropped, all later messages are
    /// dropped, so that the log has no gaps before its end.
    pub(crate) fn charge_log(&self, bytes: u64) -> LogAdmission {
        let mut usage = self.total.logs();
        let total = usage.bytes.saturating_add(bytes);
        let is_within = usage.dropped == 0
            && usage.messages < limit::LOG_MESSAGES
            && total <= limit::LOG_MESSAGES_BYTES;
        if is_within {
            usage.messages += 1;
            usage.bytes = total;
            return LogAdmission::Granted;
        }
        usage.dropped += 1;
        if usage.dropped == 1 { LogAdmission::FirstDropped } else { LogAdmission::Dropped }
    }

    /// Returns the number of log messages that were dropped.
    pub(crate) fn dropped_logs(&self) -> u64 {
        self.total.logs().dropped
    }
}

/// Returns the failure if web handlers hold as many guest instances as they may.
pub(crate) fn handlers_full() -> Failure {
    let text = "the web handlers, tools and nodes that this caller calls hold as many guest \
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
    use proptest::prelude::*;

    use super::*;
    use crate::limit::Limits;
    use crate::run_memory::RunMemoryPool;

    fn caller(plugin: &str) -> Caller {
        Caller {
            app: "shop".parse().unwrap(),
            plugin: plugin.parse().unwrap(),
            tenant: None,
            owner: CallerId::default(),
        }
    }

    /// Returns grants that allow a number of host calls.
    fn calls(host_calls: u32) -> Grants {
        Grants { limits: Limits { host_calls, ..Limits::default() }, ..Grants::default() }
    }

    fn limit_of(charged: Result<(), Unwind>) -> String {
        match charged {
            Err(Unwind::Limit(failure)) => failure.details.unwrap()["limit"].to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tool_has_its_own_call_budget_and_shares_the_budget_of_its_handler() {
        let handler = CallBudget::for_handler(None);
        let (desk, tools) = (caller("desk"), caller("tools"));
        handler.charge_calls(10, &calls(10), &desk).unwrap();
        assert_eq!(limit_of(handler.charge_calls(1, &calls(10), &desk)), "\"host_calls\"");
        let most = u32::try_from(limit::TASK_HOST_CALLS).unwrap();
        let tool = handler.for_tool();
        tool.charge_calls(10, &calls(10), &tools).unwrap();
        let ended = tool.for_tool().charge_calls(most, &calls(most), &tools);
        assert_eq!(limit_of(ended), "\"task_host_calls\"");
    }

    #[test]
    fn call_budget_is_unused_after_a_reset() {
        let budget = CallBudget::default();
        let (calls, desk) = (calls(3), caller("desk"));
        budget.charge_calls(3, &calls, &desk).unwrap();
        budget.charge_blob(limit::TASK_BLOB_BYTES).unwrap();
        budget.charge_journal(9, 9).unwrap();
        budget.reset();
        budget.charge_calls(3, &calls, &desk).unwrap();
        budget.for_tool().charge_journal(9, 9).unwrap();
        assert_eq!(limit_of(budget.charge_journal(1, 9)), "\"task_journal_bytes\"");
        budget.charge_blob(limit::TASK_BLOB_BYTES).unwrap();
        assert_eq!(limit_of(budget.charge_blob(1)), "\"task_blob_bytes\"");
    }

    #[test]
    fn journal_counts_as_memory_of_the_run_until_the_task_has_ended() {
        const MIB: u64 = 1 << 20;
        let (pool, caller) = (RunMemoryPool::new(64 * MIB), CallerId::default());
        let memory = MemoryCharge::new(pool.try_start(caller).unwrap());
        // The run has counted 10 MiB of the journal when it read them from the log, and one run can
        // have 28 MiB.
        let budget = CallBudget::for_task(memory, 10 * MIB);
        for _attempt in 0..2 {
            budget.charge_journal(38 * MIB, u64::MAX).unwrap();
            let refused = budget.for_tool().charge_journal(1, u64::MAX);
            assert_eq!(limit_of(refused), "\"runs_memory\"");
            budget.reset();
            assert!(!pool.may_start(caller), "the journal keeps the results");
        }
        drop(budget);
        assert!(pool.may_start(caller));
    }

    #[test]
    fn log_messages_beyond_the_limit_are_dropped_until_the_next_attempt() {
        let budget = CallBudget::default();
        let tool = budget.for_tool();
        let granted = (0..limit::LOG_MESSAGES).all(|_| tool.charge_log(1) == LogAdmission::Granted);
        assert!(granted);
        assert_eq!(budget.charge_log(1), LogAdmission::FirstDropped);
        assert_eq!((tool.charge_log(0), budget.dropped_logs()), (LogAdmission::Dropped, 2));
        budget.reset();
        assert_eq!((tool.charge_log(1), budget.dropped_logs()), (LogAdmission::Granted, 0));
    }

    proptest! {
        #[test]
        fn granted_messages_are_within_the_byte_limit_and_precede_all_dropped_messages(
            sizes in prop::collection::vec(0..=limit::LOG_MESSAGES_BYTES / 4, 1..40),
        ) {
            let budget = CallBudget::default();
            let charged: Vec<_> = sizes.iter().map(|bytes| budget.charge_log(*bytes)).collect();
            let granted = charged.iter().take_while(|it| **it == LogAdmission::Granted).count();
            prop_assert!(sizes[..granted].iter().sum::<u64>() <= limit::LOG_MESSAGES_BYTES);
            let expected = sizes.iter().scan(0_u64, |total, bytes| {
                *total += bytes;
                Some(*total <= limit::LOG_MESSAGES_BYTES)
            });
            prop_assert_eq!(granted, expected.take_while(|fits| *fits).count());
            let (dropped, rest) = (charged.len() - granted, &charged[granted..]);
            prop_assert_eq!(budget.dropped_logs(), dropped as u64);
            if let Some((first, others)) = rest.split_first() {
                prop_assert_eq!(*first, LogAdmission::FirstDropped);
                prop_assert!(others.iter().all(|it| *it == LogAdmission::Dropped));
            }
        }
    }
}
