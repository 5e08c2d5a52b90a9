//! `[limits]`: limits of threads, apps and tenants.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_graph::limit::{GraphLimits, MOST_STATE_BYTES, MOST_TASKS};
use wattle_run::caps::{Caps, TenantCaps};
use wattle_run::limit;
use wattle_run::memory_budget::{LEAST_BUDGET_BYTES, MemoryBudget};
use wattle_sandbox::CompileLimits;
use wattle_sandbox::config::DEFAULT_MAX_INSTANCES;

use crate::config::{ByteSize, Config};

/// `[limits]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Maximum number of concurrent runs of the host. Default: `DEFAULT_MAX_INSTANCES` of the
    /// sandbox.
    pub runs: Option<NonZeroU64>,
    /// Maximum number of guest instances that web handlers and the tools that they call hold.
    /// Default: half of the maximum number of instances of the sandbox.
    pub handlers: Option<NonZeroU64>,
    /// The budget of memory, from which the defaults of all pools and the caches are derived.
    /// Default: that of the machine; see [`MemoryBudget::of_machine`].
    pub memory: Option<ByteSize>,
    /// Maximum memory of all runs together: their states, journals, model requests, outcomes and
    /// events. Default: the part of runs in the budget.
    pub runs_memory: Option<ByteSize>,
    /// Maximum memory of all responses of services that arrive. Default: the part of services in
    /// the budget.
    pub services_memory: Option<ByteSize>,
    /// Maximum memory of all guests together. Default: the part of guests in the budget.
    pub guests_memory: Option<ByteSize>,
    /// Maximum memory of the compiled code of all loaded components together. Default: the part of
    /// code in the budget.
    pub code_memory: Option<ByteSize>,
    /// Maximum working memory of all SQLite databases together. Default: the part of SQLite in the
    /// budget.
    pub sqlite_memory: Option<ByteSize>,
    /// Maximum size of a run context as JSON.
    pub run_context: Option<ByteSize>,
    /// Maximum size of the event log of a thread in the store.
    pub thread_log: Option<ByteSize>,
    /// Maximum number of sends that a task can return.
    pub task_sends: Option<NonZeroU64>,
    /// Maximum number of tasks of a superstep.
    pub step_tasks: Option<NonZeroU64>,
    /// Maximum number of tasks of a run, in all of its graphs together.
    pub run_tasks: Option<NonZeroU64>,
    /// Maximum size of the state of a graph in memory.
    pub state_bytes: Option<ByteSize>,
    /// Maximum size in memory of the outcomes of one superstep.
    pub step_outcome_bytes: Option<ByteSize>,
    /// Maximum number of pending interrupts of a thread.
    pub thread_questions: Option<NonZeroU64>,
    /// Maximum number of blobs that a thread refers to.
    pub thread_blobs: Option<NonZeroU64>,
    /// Maximum total size of the blobs that a thread refers to.
    pub thread_blob_bytes: Option<ByteSize>,
    /// Maximum total size of the blobs that web handlers of an app store within an hour.
    pub handler_blob_bytes: Option<ByteSize>,
    /// Maximum total size of the blobs of an app. Default: unlimited.
    pub app_blob_bytes: Option<ByteSize>,
    /// Maximum total size of the files that an app's file projections write for a run.
    pub run_file_bytes: Option<ByteSize>,
    /// Maximum total size of the files of an app's file projections.
    pub app_file_bytes: Option<ByteSize>,
    /// Maximum total size of the documents of one tenant, or of all documents without a tenant, in
    /// the long-term memory.
    pub memory_bytes: Option<ByteSize>,
    /// Maximum total size of the cached outcomes of an app, for each tenant.
    pub app_cache_bytes: Option<ByteSize>,
    /// Free space of the disk below which no run begins, and no thread, blob, document, plugin or
    /// file of an app is stored; 0 for no floor. Default: [`limit::FREE_DISK_BYTES`], or 2 % of the
    /// file system if that is less.
    pub free_disk: Option<ByteSize>,
    /// Limits of the compilation of a component.
    pub compile: CompileConfig,
    /// Limits of a tenant, unless `[tenants.<name>]` overrides them.
    pub tenant: TenantLimits,
}

/// `limits.compile`: limits of the compilation of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompileConfig {
    /// CPU time of all threads of the compiler process, in whole seconds.
    pub cpu: Option<HumanDuration>,
    /// Wall-clock time.
    pub wall: Option<HumanDuration>,
    /// Address space.
    pub memory: Option<ByteSize>,
}

impl CompileConfig {
    /// Converts the section to the settings of the sandbox.
    pub fn limits(&self) -> CompileLimits {
        let usual = CompileLimits::default();
        let time = |set: Option<HumanDuration>, usual: Duration| {
            set.map_or(usual, |span| Duration::from_millis(span.as_ms()))
        };
        CompileLimits {
            cpu: time(self.cpu, usual.cpu),
            wall: time(self.wall, usual.wall),
            memory_bytes: self.memory.map_or(usual.memory_bytes, |size| size.0),
        }
    }
}

/// Limits of a tenant. Default: unlimited, except for documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantLimits {
    /// Maximum number of threads.
    pub threads: Option<u64>,
    /// Maximum size of the tenant's threads in the store.
    pub bytes: Option<ByteSize>,
    /// Maximum total size of the tenant's blobs.
    pub blob_bytes: Option<ByteSize>,
    /// Maximum total size of the tenant's documents in the long-term memory. Default:
    /// `limits.memory_bytes`.
    pub memory_bytes: Option<ByteSize>,
}

impl TenantLimits {
    fn caps(&self, usual: &TenantCaps) -> TenantCaps {
        let Self { threads, bytes, blob_bytes, memory_bytes } = self;
        TenantCaps {
            threads: threads.or(usual.threads),
            bytes: bytes.map(|size| size.0).or(usual.bytes),
            blob_bytes: blob_bytes.map(|size| size.0).or(usual.blob_bytes),
            memory_bytes: memory_bytes.map(|size| size.0).or(usual.memory_bytes),
        }
    }
}

impl LimitsConfig {
    /// Returns the limits of graphs.
    pub fn graphs(&self) -> GraphLimits {
        let usual = GraphLimits::default();
        let set = |limit: Option<NonZeroU64>, usual: u64| limit.map_or(usual, NonZeroU64::get);
        let bytes = |size: Option<ByteSize>, usual: u64| size.map_or(usual, |size| size.0);
        GraphLimits {
            task_sends: set(self.task_sends, usual.task_sends),
            step_tasks: set(self.step_tasks, usual.step_tasks),
            run_tasks: set(self.run_tasks, usual.run_tasks),
            state_bytes: bytes(self.state_bytes, usual.state_bytes),
            step_outcome_bytes: bytes(self.step_outcome_bytes, usual.step_outcome_bytes),
        }
    }

    /// Returns the limits of all pools of memory and of the caches on a machine. `machine_bytes` is
    /// the memory that this process may use; `None` if the system does not report it.
    fn memory_budget_of(&self, machine_bytes: Option<u64>) -> MemoryBudget {
        let usual = self.memory.map_or_else(
            || MemoryBudget::of_machine(machine_bytes),
            |total| MemoryBudget::new(total.0),
        );
        let bytes = |size: Option<ByteSize>, usual: u64| size.map_or(usual, |size| size.0);
        MemoryBudget {
            guests_bytes: bytes(self.guests_memory, usual.guests_bytes),
            runs_bytes: bytes(self.runs_memory, usual.runs_bytes),
            code_bytes: bytes(self.code_memory, usual.code_bytes),
            services_bytes: bytes(self.services_memory, usual.services_bytes),
            sqlite_bytes: bytes(self.sqlite_memory, usual.sqlite_bytes),
            ..usual
        }
    }

    /// Returns the key, the value and the minimum of each limit of memory below its minimum.
    pub(crate) fn too_little_memory(
        &self,
    ) -> impl Iterator<Item = (&'static str, ByteSize, ByteSize)> {
        let all = [
            ("memory", self.memory, LEAST_BUDGET_BYTES),
            ("runs_memory", self.runs_memory, limit::LEAST_RUNS_MEMORY_BYTES),
            ("services_memory", self.services_memory, limit::LEAST_SERVICES_MEMORY_BYTES),
            ("guests_memory", self.guests_memory, limit::LEAST_GUESTS_MEMORY_BYTES),
            ("code_memory", self.code_memory, limit::LEAST_CODE_MEMORY_BYTES),
            ("sqlite_memory", self.sqlite_memory, limit::LEAST_SQLITE_MEMORY_BYTES),
        ];
        all.into_iter().filter_map(|(key, size, least)| {
            let size = size.filter(|size| size.0 < least)?;
            Some((key, size, ByteSize(least)))
        })
    }

    /// Returns the key and the value of each limit on tasks that exceeds its maximum.
    pub(crate) fn too_many_tasks(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let GraphLimits { task_sends, step_tasks, run_tasks, .. } = self.graphs();
        let all =
            [("task_sends", task_sends), ("step_tasks", step_tasks), ("run_tasks", run_tasks)];
        all.into_iter().filter(|(_, limit)| *limit > MOST_TASKS)
    }

    /// Returns the key, the value and the maximum of each size limit that exceeds its maximum.
    pub(crate) fn too_many_bytes(
        &self,
    ) -> impl Iterator<Item = (&'static str, ByteSize, ByteSize)> {
        let all = [
            ("run_context", self.run_context, limit::MOST_RUN_CONTEXT_BYTES),
            ("state_bytes", self.state_bytes, MOST_STATE_BYTES),
            ("step_outcome_bytes", self.step_outcome_bytes, MOST_STATE_BYTES),
        ];
        let set =
            all.into_iter().filter_map(|(key, size, most)| Some((key, size?, ByteSize(most))));
        set.filter(|(_, size, most)| size > most)
    }
}

impl Config {
    /// Returns the limits of all pools of memory and of the caches.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.limits.memory_budget_of(self.machine_bytes)
    }

    /// Returns the maximum number of concurrent runs. A running run usually has one guest.
    pub fn max_runs(&self) -> usize {
        let runs = self.limits.runs.map_or(DEFAULT_MAX_INSTANCES.into(), NonZeroU64::get);
        usize::try_from(runs).unwrap_or(usize::MAX)
    }

    /// Returns the maximum number of guest instances of web handlers.
    pub fn max_handlers(&self) -> usize {
        let usual = u64::from(DEFAULT_MAX_INSTANCES / limit::HANDLER_INSTANCES_DIVISOR);
        let handlers = self.limits.handlers.map_or(usual, NonZeroU64::get);
        usize::try_from(handlers).unwrap_or(usize::MAX)
    }

    /// Returns the caps of threads, apps and tenants.
    pub fn caps(&self) -> Caps {
        let usual = Caps::default();
        let LimitsConfig {
            run_context,
            thread_log,
            thread_questions,
            thread_blobs,
            thread_blob_bytes,
            handler_blob_bytes,
            app_blob_bytes,
            run_file_bytes,
            app_file_bytes,
            memory_bytes,
            app_cache_bytes,
            tenant,
            ..
        } = &self.limits;
        let bytes = |size: &Option<ByteSize>, usual: u64| size.map_or(usual, |size| size.0);
        let tenant = tenant.caps(&usual.tenant);
        let own = self.tenants.iter().map(|(name, own)| (name.clone(), own.limits.caps(&tenant)));
        Caps {
            run_context_bytes: bytes(run_context, usual.run_context_bytes),
            thread_log_bytes: bytes(thread_log, usual.thread_log_bytes),
            thread_questions: thread_questions.map_or(usual.thread_questions, NonZeroU64::get),
            thread_blobs: thread_blobs.map_or(usual.thread_blobs, NonZeroU64::get),
            thread_blob_bytes: bytes(thread_blob_bytes, usual.thread_blob_bytes),
            handler_blob_bytes: bytes(handler_blob_bytes, usual.handler_blob_bytes),
            app_blob_bytes: app_blob_bytes.map(|size| size.0),
            run_file_bytes: bytes(run_file_bytes, usual.run_file_bytes),
            app_file_bytes: bytes(app_file_bytes, usual.app_file_bytes),
            memory_bytes: bytes(memory_bytes, usual.memory_bytes),
            app_cache_bytes: bytes(app_cache_bytes, usual.app_cache_bytes),
            tenants: own.collect(),
            tenant,
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::limit::STATE_BYTES;
    use wattle_run::caller_id::CallerId;
    use wattle_run::fair_share::share_of;
    use wattle_run::memory_budget::DEFAULT_BUDGET;
    use wattle_run::service_memory::ServiceMemory;

    use super::*;
    use crate::config::CallerLimits;

    const MIB: u64 = 1 << 20;

    #[test]
    fn parts_of_the_budget_follow_the_machine_or_the_setting() {
        let limits = LimitsConfig::default();
        assert_eq!(limits.memory_budget_of(None), DEFAULT_BUDGET);
        assert_eq!(limits.memory_budget_of(Some(64 << 30)), DEFAULT_BUDGET);
        assert_eq!(limits.memory_budget_of(Some(2 << 30)).runs_bytes, 256 * MIB);
        let memory = Some(ByteSize(10 << 30));
        let larger = LimitsConfig { memory, runs_memory: Some(ByteSize(64 * MIB)), ..limits };
        let budget = larger.memory_budget_of(Some(1 << 30));
        assert_eq!((budget.guests_bytes, budget.runs_bytes), (2 << 30, 64 * MIB));
        assert_eq!(budget.caches.states_bytes, 128 * MIB);
    }

    #[test]
    fn largest_items_fit_into_the_share_of_one_caller_or_name_the_setting() {
        for machine_bytes in [1 << 30, 64 << 30] {
            let budget = LimitsConfig::default().memory_budget_of(Some(machine_bytes));
            let limits = CallerLimits::default().to_limits(STATE_BYTES, &budget);
            assert!(share_of(limits.response_bytes as u64, 0) >= STATE_BYTES);
            let services = ServiceMemory::new(budget.services_bytes);
            let message = services.response(CallerId::default()).set(16 * MIB);
            message.expect("the largest message of an MCP server fits");
            let document = services.response(CallerId::default()).set(32 * MIB);
            assert_eq!(document.is_ok(), machine_bytes > 1 << 30, "{document:?}");
            if let Err(full) = document {
                assert!(!full.can_fit && full.to_string().contains("`limits.services_memory`"));
            }
        }
    }
}
