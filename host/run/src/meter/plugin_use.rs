//! What plugins have used since their app was loaded first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wattle_graph::id::{PluginName, RunId, ThreadId};

/// Number of denied host calls that the counters of a plugin keep.
const DENIALS: usize = 20;

/// Maximum number of characters of the message of a denied call. The message of a missing grant,
/// with the line to add, is shorter.
const MESSAGE_CHARS: usize = 2_000;

/// Counters of one plugin in one app.
#[derive(Debug, Default)]
pub struct PluginUse {
    calls: AtomicU64,
    failed: AtomicU64,
    denied: AtomicU64,
    cpu_us: AtomicU64,
    memory_peak_bytes: AtomicU64,
    /// The newest denied host calls, oldest first.
    denials: Mutex<VecDeque<Denial>>,
}

/// A host call of a plugin that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Time of the call, in milliseconds since 1970.
    pub at_ms: i64,
    /// Interface and function, such as `http.send`.
    pub function: &'static str,
    /// Why the call was denied. The message of a missing grant names the line to add.
    pub message: String,
    /// Tenant for which the plugin made the call.
    pub tenant: Option<String>,
    /// Thread and run of the call; `None` for a call of a web handler, and of a tool or node that a
    /// client called.
    pub run: Option<(ThreadId, RunId)>,
}

/// The values of the counters of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginUsed {
    /// Calls of nodes, tools, reducers and the web handler. Each attempt of a node counts.
    pub calls: u64,
    /// Calls that ended with a failure or exceeded their time.
    pub failed: u64,
    /// Host calls of the plugin that were denied.
    pub denied: u64,
    /// CPU time of the guests in microseconds. Reducers do not count.
    pub cpu_us: u64,
    /// The most memory that one guest had, in bytes. Reducers do not count.
    pub memory_peak_bytes: u64,
}

impl PluginUse {
    /// Counts a call of a function of the plugin.
    pub fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that failed.
    pub fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a host call that was denied, and keeps it among the newest ones. Its message is cut
    /// to 2,000 characters.
    pub fn add_denial(&self, denial: Denial) {
        self.denied.fetch_add(1, Ordering::Relaxed);
        let message = denial.message.chars().take(MESSAGE_CHARS).collect();
        let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        if denials.len() == DENIALS {
            denials.pop_front();
        }
        denials.push_back(Denial { message, ..denial });
    }

    /// Returns the newest denied host calls, newest first, at most 20.
    pub fn denials(&self) -> Vec<Denial> {
        let denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        denials.iter().rev().cloned().collect()
    }

    /// Adds the CPU time and the memory of a guest that has ended.
    pub fn add_guest(&self, cpu: Duration, memory_bytes: u64) {
        let cpu_us = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        self.cpu_us.fetch_add(cpu_us, Ordering::Relaxed);
        self.memory_peak_bytes.fetch_max(memory_bytes, Ordering::Relaxed);
    }

    /// Returns the values of the counters.
    pub fn used(&self) -> PluginUsed {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PluginUsed {
            calls: read(&self.calls),
            failed: read(&self.failed),
            denied: read(&self.denied),
            cpu_us: read(&self.cpu_us),
            memory_peak_bytes: read(&self.memory_peak_bytes),
        }
    }
}

/// The counters of the plugins of one version of an app. Versions of the same app share the
/// counters of the plugins that both have.
#[derive(Debug, Default)]
pub struct PluginUses(Mutex<BTreeMap<PluginName, Arc<PluginUse>>>);

impl PluginUses {
    /// Returns the counters of a plugin.
    pub fn of(&self, plugin: &PluginName) -> Arc<PluginUse> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(plugin) {
            return found.clone();
        }
        all.entry(plugin.clone()).or_default().clone()
    }

    /// Continues the counters that another version of the app has of the given plugins. Counters
    /// of other plugins are left behind, so that their number stays that of the loaded plugins.
    pub fn continue_from<'p>(
        &mut self,
        other: &Self,
        plugins: impl IntoIterator<Item = &'p PluginName>,
    ) {
        let own = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        own.extend(plugins.into_iter().map(|plugin| (plugin.clone(), other.of(plugin))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PluginName {
        PluginName::new(text).unwrap()
    }

    #[test]
    fn a_newer_version_continues_the_counters_of_the_plugins_that_it_has() {
        let (old, mut new) = (PluginUses::default(), PluginUses::default());
        old.of(&name("kept")).count_call();
        old.of(&name("gone")).count_call();
        new.continue_from(&old, [&name("kept"), &name("added")]);
        // A run on the old version still counts.
        old.of(&name("kept")).count_call();
        assert_eq!(new.of(&name("kept")).used().calls, 2);
        assert_eq!(new.of(&name("added")).used(), PluginUsed::default());
        assert_eq!(new.of(&name("gone")).used(), PluginUsed::default());
    }

    fn denial(at_ms: i64) -> Denial {
        let message = "x".repeat(2 * MESSAGE_CHARS);
        Denial { at_ms, function: "http.send", message, tenant: None, run: None }
    }

    #[test]
    fn the_newest_denials_are_kept() {
        let counters = PluginUse::default();
        for at_ms in 0..50 {
            counters.add_denial(denial(at_ms));
        }
        let kept = counters.denials();
        let times: Vec<i64> = kept.iter().map(|denial| denial.at_ms).collect();
        assert_eq!(times, (30..50).rev().collect::<Vec<_>>());
        assert_eq!((kept[0].message.len(), counters.used().denied), (MESSAGE_CHARS, 50));
    }

    #[test]
    fn the_memory_of_the_largest_guest_and_the_sum_of_the_times_are_kept() {
        let counters = PluginUse::default();
        for (ms, bytes) in [(2, 64), (3, 1_024), (1, 128)] {
            counters.add_guest(Duration::from_millis(ms), bytes);
        }
        counters.count_failure();
        counters.add_denial(denial(1));
        let expected =
            PluginUsed { calls: 0, failed: 1, denied: 1, cpu_us: 6_000, memory_peak_bytes: 1_024 };
        assert_eq!(counters.used(), expected);
    }
}
