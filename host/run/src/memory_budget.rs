//! The memory that untrusted work may take, divided between the pools and the caches of the host.
//!
//! Each pool and each cache has a limit of its own. Work of one attacker can fill several of them
//! at once, so the defaults of all are parts of one budget. An operator can set the budget, and
//! each part that is a pool.
//!
//! # Peak memory
//!
//! An app or a caller holds at most half of a pool that [`fair_share`](crate::fair_share) divides.
//! The pools of compiled code and of SQLite have no shares. With the budget of [`BUDGET_BYTES`],
//! one attacker holds at most:
//!
//! | MiB | guests | runs | services | SQLite | code | bodies, responses | together |
//! |---|---|---|---|---|---|---|---|
//! | an app | 512 | 512 | 128 | 256 | 1,024 | | 2,432 |
//! | a client of apps | 512 | 512 | 128 | 256 | | 128 each | 1,664 |
//! | both | 512 | 512 | 128 | 256 | 1,024 | 128 each | 2,688 |
//!
//! The caches have no shares: one attacker can fill all of them, which are 576 MiB, and the slots
//! of guests that have ended keep 256 MiB.
//!
//! A process that does nothing takes about 100 MB. An attack on one pool other than that of code
//! takes at most 512 MiB, which are 537 MB. So the process stays below 1 GB, and 360 MB remain for
//! the work of others, for the caches and for documents that are being parsed. One attacker who
//! fills several pools, or components that fill the pool of code, can take more than 1 GB. With a
//! budget of 1,280 MiB, an app that fills all pools and caches makes the host hold 816 MiB and a
//! client 704 MiB, which are 856 MB and 738 MB, so the process stays below 1 GB with either.
//! Several attackers together fill at most all pools and caches, which are at most 77/80 of the
//! budget, unless parts have their minimum.

use crate::limit::{
    LEAST_CODE_MEMORY_BYTES, LEAST_GUESTS_MEMORY_BYTES, LEAST_RUNS_MEMORY_BYTES,
    LEAST_SERVICES_MEMORY_BYTES, LEAST_SQLITE_MEMORY_BYTES,
};

/// Budget of a machine with enough memory, in bytes. See [the module](self) for what one attacker
/// can take of it.
pub const BUDGET_BYTES: u64 = 5 << 30;

/// Minimum of the budget that an operator can set, in bytes. Most pools then have their minimum.
pub const LEAST_BUDGET_BYTES: u64 = 256 << 20;

/// Eighths of the memory of the machine that the budget takes at most. The rest is for the
/// processes that compile components, the page cache of the system and other programs. A machine
/// with 8 GiB has [`BUDGET_BYTES`].
const MACHINE_EIGHTHS: u64 = 5;

/// Divisor of the part of guests. A guest that is compiled from Rust begins with 1 MiB, so some 400
/// nodes of one app execute at once. The slots of guests that have ended keep a quarter as much,
/// [`KEPT_MEMORY_DIVISOR`](crate::limit::KEPT_MEMORY_DIVISOR), besides.
const GUESTS_DIVISOR: u64 = 5;

/// Divisor of the part of runs. One run can have a state, outcomes and the journal of a task of the
/// largest default size.
const RUNS_DIVISOR: u64 = 5;

/// Divisor of the part of compiled code. Hundreds of components of Rust fit, each with a few MiB,
/// or two components of the largest size.
const CODE_DIVISOR: u64 = 5;

/// Divisor of the part of request bodies. A caller can have a body of the largest default size with
/// its values.
const BODIES_DIVISOR: u64 = 20;

/// Divisor of the part of responses. A caller can have a response with a state of the largest
/// default size.
const RESPONSES_DIVISOR: u64 = 20;

/// Divisor of the part of responses of services. A caller can have a document of a model of the
/// largest size.
const SERVICES_DIVISOR: u64 = 20;

/// Divisor of the part of SQLite. A sort of five million short rows fits.
const SQLITE_DIVISOR: u64 = 20;

/// Divisor of the part of the states of threads. Some hundred conversations of as many messages
/// fit.
const STATES_DIVISOR: u64 = 80;

/// Divisor of the part of each cache of compiled schemas. A schema of 20 KiB without patterns takes
/// about 1 MiB, and each pattern counts one to two MiB, which matching it may take.
const SCHEMAS_DIVISOR: u64 = 80;

/// Divisor of the part of the pages of logs. 32 pages of the maximum size fit, and some thousand of
/// the usual size.
const LOG_PAGES_DIVISOR: u64 = 40;

/// Divisor of the part of the pages of the store's file. The hot part of a large store fits.
const FILE_PAGES_DIVISOR: u64 = 40;

/// Divisor of the part of the fields of each table of the store: those of both tables take as much
/// as the pages of its file. They are enough for more than a hundred thousand threads.
const FIELDS_DIVISOR: u64 = 80;

/// Minimum of the part of each cache, in bytes: two pages of a log of the maximum size.
const LEAST_CACHE_BYTES: u64 = 8 << 20;

const MIB: u64 = 1 << 20;

/// The pools and caches of a host with [`BUDGET_BYTES`].
pub const DEFAULT_BUDGET: MemoryBudget = MemoryBudget::new(BUDGET_BYTES);

/// The default limits of the pools and of the caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Linear memory and tables of all guests.
    pub guests_bytes: u64,
    /// States, journals, requests, outcomes and events of all runs.
    pub runs_bytes: u64,
    /// Compiled code of all loaded components.
    pub code_bytes: u64,
    /// Bodies of all requests, with the values that were parsed of them.
    pub bodies_bytes: u64,
    /// Responses that clients have not read.
    pub responses_bytes: u64,
    /// Responses of services that arrive.
    pub services_bytes: u64,
    /// Working memory of all SQLite databases.
    pub sqlite_bytes: u64,
    /// The caches.
    pub caches: CacheBudget,
}

/// The limits of the caches, in bytes. Unlike a pool, a full cache refuses nothing: the host reads
/// or computes again what is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBudget {
    /// States of threads. Values that states share count once.
    pub states_bytes: u64,
    /// Compiled schemas of the engine. The adapter of models has a cache of the same size.
    pub schemas_bytes: u64,
    /// Pages of logs that streams have read and not sent.
    pub log_pages_bytes: u64,
    /// Pages of the file of the store.
    pub file_pages_bytes: u64,
    /// Fields by which lists of threads select, of a store in a file. Those of runs have a cache of
    /// the same size.
    pub fields_bytes: u64,
}

impl CacheBudget {
    /// Returns the parts of a budget of `total` bytes.
    const fn new(total: u64) -> Self {
        Self {
            states_bytes: part(total, STATES_DIVISOR, LEAST_CACHE_BYTES),
            schemas_bytes: part(total, SCHEMAS_DIVISOR, LEAST_CACHE_BYTES),
            log_pages_bytes: part(total, LOG_PAGES_DIVISOR, LEAST_CACHE_BYTES),
            file_pages_bytes: part(total, FILE_PAGES_DIVISOR, LEAST_CACHE_BYTES),
            fields_bytes: part(total, FIELDS_DIVISOR, LEAST_CACHE_BYTES),
        }
    }
}

impl Default for CacheBudget {
    /// Returns the caches of a host with [`BUDGET_BYTES`].
    fn default() -> Self {
        DEFAULT_BUDGET.caches
    }
}

impl MemoryBudget {
    /// Divides a budget of `total` bytes. The parts are whole MiB. Parts with a minimum have at
    /// least this minimum, so the parts of a small budget may exceed it together.
    #[must_use]
    pub const fn new(total: u64) -> Self {
        Self {
            guests_bytes: part(total, GUESTS_DIVISOR, LEAST_GUESTS_MEMORY_BYTES),
            runs_bytes: part(total, RUNS_DIVISOR, LEAST_RUNS_MEMORY_BYTES),
            code_bytes: part(total, CODE_DIVISOR, LEAST_CODE_MEMORY_BYTES),
            bodies_bytes: part(total, BODIES_DIVISOR, 0),
            responses_bytes: part(total, RESPONSES_DIVISOR, 0),
            services_bytes: part(total, SERVICES_DIVISOR, LEAST_SERVICES_MEMORY_BYTES),
            sqlite_bytes: part(total, SQLITE_DIVISOR, LEAST_SQLITE_MEMORY_BYTES),
            caches: CacheBudget::new(total),
        }
    }

    /// Divides the default budget of a machine. `machine_bytes` is the memory that this process may
    /// use; `None` if the system does not report it.
    #[must_use]
    pub fn of_machine(machine_bytes: Option<u64>) -> Self {
        Self::new(default_total_bytes(machine_bytes))
    }
}

/// Returns the default budget of a machine, in bytes.
#[must_use]
pub fn default_total_bytes(machine_bytes: Option<u64>) -> u64 {
    let of_machine = machine_bytes.map(|machine| machine / 8 * MACHINE_EIGHTHS);
    of_machine.map_or(BUDGET_BYTES, |bytes| bytes.min(BUDGET_BYTES))
}

/// Returns a part of a budget, rounded down to whole MiB, and at least `least`.
const fn part(total: u64, divisor: u64, least: u64) -> u64 {
    let bytes = total / divisor / MIB * MIB;
    if bytes < least { least } else { bytes }
}

#[cfg(test)]
mod tests {
    use wattle_graph::limit::{STATE_BYTES, STEP_OUTCOME_BYTES};

    use super::*;
    use crate::fair_share::share_of;
    use crate::limit::{
        JSON_VALUES_BYTES, KEPT_MEMORY_DIVISOR, MEMORY_BYTES, SHARE_RESERVE_DIVISOR,
        TASK_JOURNAL_BYTES,
    };

    /// Memory of a process that does nothing, in bytes.
    const IDLE_BYTES: u64 = 100_000_000;

    /// Maximum memory of a process under attack, in bytes.
    const MOST_BYTES: u64 = 1_000_000_000;

    /// Default maximum size of a request body, in bytes.
    const BODY_BYTES: u64 = 16 * MIB;

    /// Returns what one owner holds of a pool if no other owner holds anything.
    fn share(pool: u64) -> u64 {
        share_of(pool, 0)
    }

    /// Returns what all pools, all caches and the slots of ended guests take together.
    fn all_bytes(all: &MemoryBudget) -> u64 {
        let MemoryBudget {
            guests_bytes,
            runs_bytes,
            code_bytes,
            bodies_bytes,
            responses_bytes,
            services_bytes,
            sqlite_bytes,
            caches,
        } = all;
        let pools = guests_bytes
            + runs_bytes
            + code_bytes
            + bodies_bytes
            + responses_bytes
            + services_bytes
            + sqlite_bytes;
        pools + caches_bytes(caches) + kept(all)
    }

    /// Returns the memory of all caches if they are full. There are two caches of schemas, and two
    /// of fields.
    fn caches_bytes(caches: &CacheBudget) -> u64 {
        let CacheBudget {
            states_bytes,
            schemas_bytes,
            log_pages_bytes,
            file_pages_bytes,
            fields_bytes,
        } = *caches;
        states_bytes + 2 * schemas_bytes + log_pages_bytes + file_pages_bytes + 2 * fields_bytes
    }

    /// Returns the memory that the slots of ended guests keep.
    fn kept(all: &MemoryBudget) -> u64 {
        all.guests_bytes / KEPT_MEMORY_DIVISOR
    }

    #[test]
    fn pools_and_caches_stay_within_the_budget() {
        for total in [BUDGET_BYTES, 80 << 30] {
            assert_eq!(all_bytes(&MemoryBudget::new(total)), total / 80 * 77);
        }
        // A budget without minimums that is no multiple of the divisors.
        for total in [(3_200 << 20) + 12_345, BUDGET_BYTES - 1, (17 << 30) + 1] {
            assert!(all_bytes(&MemoryBudget::new(total)) <= total, "{total}");
        }
    }

    #[test]
    fn caches_grow_with_the_budget() {
        let of = |mib: u64| MemoryBudget::new(mib * MIB).caches;
        let CacheBudget { states_bytes, schemas_bytes, log_pages_bytes, .. } = of(5_120);
        assert_eq!((states_bytes, schemas_bytes, log_pages_bytes), (64 * MIB, 64 * MIB, 128 * MIB));
        let CacheBudget { file_pages_bytes, fields_bytes, .. } = of(5_120);
        assert_eq!((file_pages_bytes, fields_bytes), (128 * MIB, 64 * MIB));
        let totals = [256, 1_024, 1_280, 5_120, 10_240].map(|mib| caches_bytes(&of(mib)) / MIB);
        assert_eq!(totals, [56, 110, 144, 576, 1_152]);
    }

    /// Returns what one app and one client hold if each fills all pools that it can fill.
    fn held_by_one(total: u64) -> (u64, u64) {
        let all = MemoryBudget::new(total);
        // The host raises the parts of bodies and responses to two of the largest.
        let bodies = all.bodies_bytes.max(2 * (BODY_BYTES + JSON_VALUES_BYTES));
        let responses = all.responses_bytes.max(2 * STATE_BYTES);
        let shared = share(all.guests_bytes) + share(all.runs_bytes) + share(all.services_bytes);
        let shared = shared + all.sqlite_bytes;
        (shared + all.code_bytes, shared + share(bodies) + share(responses))
    }

    #[test]
    fn process_stays_below_a_gigabyte_while_one_pool_is_attacked() {
        let all = DEFAULT_BUDGET;
        let attacked = [
            share(all.guests_bytes) + kept(&all),
            share(all.runs_bytes),
            share(all.bodies_bytes),
            share(all.responses_bytes),
            share(all.services_bytes),
            all.sqlite_bytes,
        ];
        for held in attacked {
            assert!(held + IDLE_BYTES < MOST_BYTES, "{held}");
        }
    }

    #[test]
    fn process_stays_below_a_gigabyte_with_a_lower_budget_while_one_attacker_fills_everything() {
        assert_eq!(held_by_one(BUDGET_BYTES), (2_432 * MIB, 1_664 * MIB));
        let held = [(1_280, (608, 496), 208), (1_024, (504, 444), 161)];
        for (total, (app, client), cached) in held {
            let all = MemoryBudget::new(total * MIB);
            assert_eq!(held_by_one(total * MIB), (app * MIB, client * MIB));
            assert_eq!(caches_bytes(&all.caches) + kept(&all), cached * MIB);
            assert!((app.max(client) + cached) * MIB + IDLE_BYTES < MOST_BYTES);
        }
    }

    #[test]
    fn budget_is_at_most_five_eighths_of_the_machine() {
        assert_eq!(default_total_bytes(None), BUDGET_BYTES);
        assert_eq!(default_total_bytes(Some(64 << 30)), BUDGET_BYTES);
        assert_eq!(default_total_bytes(Some(8 << 30)), BUDGET_BYTES);
        assert_eq!(default_total_bytes(Some(2 << 30)), 1_280 * MIB);
        let small = MemoryBudget::of_machine(Some(1 << 30));
        assert_eq!((small.guests_bytes, small.runs_bytes), (128 * MIB, 128 * MIB));
        assert_eq!((small.bodies_bytes, small.code_bytes), (32 * MIB, 128 * MIB));
        assert_eq!(small.services_bytes, LEAST_SERVICES_MEMORY_BYTES);
        assert_eq!(caches_bytes(&small.caches), 72 * MIB);
    }

    #[test]
    fn parts_have_their_minimum() {
        let least = MemoryBudget::new(0);
        assert_eq!(least.guests_bytes, LEAST_GUESTS_MEMORY_BYTES);
        assert_eq!(least.runs_bytes, LEAST_RUNS_MEMORY_BYTES);
        assert_eq!(least.services_bytes, LEAST_SERVICES_MEMORY_BYTES);
        assert_eq!(least.sqlite_bytes, LEAST_SQLITE_MEMORY_BYTES);
    }

    #[test]
    fn largest_default_items_fit_into_the_share_of_one_owner() {
        let most_of_one = |pool: u64| share(pool) - share(pool) / SHARE_RESERVE_DIVISOR;
        let all = DEFAULT_BUDGET;
        let run = STATE_BYTES + STEP_OUTCOME_BYTES + TASK_JOURNAL_BYTES;
        assert!(run <= most_of_one(all.runs_bytes));
        assert!(MEMORY_BYTES <= most_of_one(all.guests_bytes));
    }
}
