//! The memory that untrusted work may take, divided between the pools of the host.
//!
//! Each pool has a limit of its own. Work of one attacker can fill several pools at once, so the
//! defaults of all pools are parts of one budget. An operator can set the budget, and each part.
//!
//! # Peak memory
//!
//! An app or a caller holds at most half of a pool that [`fair_share`](crate::fair_share) divides.
//! The pools of compiled code and of SQLite have no shares. With the budget of [`BUDGET_BYTES`],
//! one attacker therefore holds at most:
//!
//! | | guests | runs | services | SQLite | code | bodies, responses | together |
//! |---|---|---|---|---|---|---|---|
//! | an app | 176 MiB | 176 MiB | 44 MiB | 88 MiB | 176 MiB | | 660 MiB |
//! | a client of apps | 176 MiB | 176 MiB | 44 MiB | 88 MiB | | 88 MiB each | 660 MiB |
//! | both | 176 MiB | 176 MiB | 44 MiB | 88 MiB | 176 MiB | 88 MiB each | 836 MiB |
//!
//! These are 692 MB, or 877 MB for both. A process that does nothing takes about 100 MB. So with an
//! app or a client alone it stays below 1 GB, and 200 MB remain for the work of others, for the
//! caches of the host and for documents that are being parsed. With both, 20 MB remain.

use crate::limit::{
    LEAST_CODE_MEMORY_BYTES, LEAST_GUESTS_MEMORY_BYTES, LEAST_RUNS_MEMORY_BYTES,
    LEAST_SERVICES_MEMORY_BYTES, LEAST_SQLITE_MEMORY_BYTES,
};

/// Budget of a machine with enough memory, in bytes. See [the module](self) for what one attacker
/// can take of it.
pub const BUDGET_BYTES: u64 = 1_408 << 20;

/// Minimum of the budget that an operator can set, in bytes. Most pools then have their minimum.
pub const LEAST_BUDGET_BYTES: u64 = 256 << 20;

/// Part of the memory of the machine that the budget takes at most: three of eight. The rest is for
/// the host itself, its caches, the processes that compile components, the page cache of the system
/// and other programs. A machine with 3.7 GiB has [`BUDGET_BYTES`].
const MACHINE_FRACTION: (u64, u64) = (3, 8);

/// Divisor of the part of guests. A guest that is compiled from Rust begins with 1 MiB, so some 150
/// nodes of one app execute at once.
const GUESTS_DIVISOR: u64 = 4;

/// Divisor of the part of runs. One run can have a state and outcomes of the largest default size.
const RUNS_DIVISOR: u64 = 4;

/// Divisor of the part of compiled code. Dozens of components of Rust fit, each with a few MiB, and
/// a few that contain an interpreter.
const CODE_DIVISOR: u64 = 8;

/// Divisor of the part of request bodies. A caller can have a body of the largest default size with
/// its values.
const BODIES_DIVISOR: u64 = 8;

/// Divisor of the part of responses. A caller can have a response with a state of the largest
/// default size.
const RESPONSES_DIVISOR: u64 = 8;

/// Divisor of the part of responses of services. A caller can have a document of a model of the
/// largest size.
const SERVICES_DIVISOR: u64 = 16;

/// Divisor of the part of SQLite. A sort of two million short rows fits.
const SQLITE_DIVISOR: u64 = 16;

const MIB: u64 = 1 << 20;

/// The pools of a host with [`BUDGET_BYTES`].
pub const DEFAULT_BUDGET: MemoryBudget = MemoryBudget::new(BUDGET_BYTES);

/// The default limits of the pools, in bytes.
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
    let (numerator, denominator) = MACHINE_FRACTION;
    let of_machine = machine_bytes.map(|machine| machine / denominator * numerator);
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
    use crate::limit::{MEMORY_BYTES, SHARE_RESERVE_DIVISOR};

    /// Returns what one owner holds of a pool if no other owner holds anything.
    fn share(pool: u64) -> u64 {
        share_of(pool, 0)
    }

    #[test]
    fn parts_add_up_to_the_budget() {
        for total in [BUDGET_BYTES, 64 << 30] {
            let MemoryBudget {
                guests_bytes,
                runs_bytes,
                code_bytes,
                bodies_bytes,
                responses_bytes,
                services_bytes,
                sqlite_bytes,
            } = MemoryBudget::new(total);
            let parts = [
                guests_bytes,
                runs_bytes,
                code_bytes,
                bodies_bytes,
                responses_bytes,
                services_bytes,
                sqlite_bytes,
            ];
            assert_eq!(parts.iter().sum::<u64>(), total);
        }
    }

    #[test]
    fn one_attacker_and_the_process_stay_below_a_gigabyte() {
        /// Memory of a process that does nothing, in bytes.
        const IDLE_BYTES: u64 = 100_000_000;
        let all = DEFAULT_BUDGET;
        let shared = share(all.guests_bytes) + share(all.runs_bytes) + share(all.services_bytes);
        let shared = shared + all.sqlite_bytes;
        let client = share(all.bodies_bytes) + share(all.responses_bytes);
        let (app, client) = (shared + all.code_bytes, shared + client);
        assert_eq!((app, client), (660 * MIB, 660 * MIB));
        let both = client + all.code_bytes;
        assert_eq!(both, 836 * MIB);
        assert!(both + IDLE_BYTES < 1_000_000_000);
    }

    #[test]
    fn budget_is_at_most_three_eighths_of_a_small_machine() {
        assert_eq!(default_total_bytes(None), BUDGET_BYTES);
        assert_eq!(default_total_bytes(Some(64 << 30)), BUDGET_BYTES);
        assert_eq!(default_total_bytes(Some(4 << 30)), BUDGET_BYTES);
        assert_eq!(default_total_bytes(Some(2 << 30)), 768 * MIB);
        let small = MemoryBudget::of_machine(Some(1 << 30));
        assert_eq!((small.guests_bytes, small.runs_bytes), (96 * MIB, 96 * MIB));
        assert_eq!((small.bodies_bytes, small.code_bytes), (48 * MIB, LEAST_CODE_MEMORY_BYTES));
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
        assert!(STATE_BYTES + STEP_OUTCOME_BYTES <= most_of_one(all.runs_bytes));
        assert!(MEMORY_BYTES <= most_of_one(all.guests_bytes));
    }
}
