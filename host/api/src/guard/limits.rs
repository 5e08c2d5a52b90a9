//! Limits for callers.

use wattle_graph::failure::code;

use crate::guard::rate::Rate;
use crate::problem::Problem;

/// Maximum number of created keys. All of them are read at once, every few seconds: one page of the
/// memory holds them, with room for keys that hosts of one database create at the same time.
pub const KEYS: usize = wattle_run::limit::MEMORY_RESULTS * 9 / 10;

/// Number of keys of a tenant from which on its keys cannot create further ones, so that no tenant
/// uses up the keys of all.
pub const TENANT_KEYS: usize = 100;

/// Maximum number of ancestors of a key. The record of a key has all of them, so that the
/// revocation of a leaked key finds all its descendants. Real chains are much shorter.
pub const MAKERS: usize = 16;

/// Lifetime of the cached keys. For this time at most, a host still accepts a key that another host
/// of the database revoked, and rejects a key that another host created.
pub const KEYS_LIFE_MS: u64 = 2_000;

/// Minimum delay between a failed attempt to read the keys and the next one.
pub const KEYS_RETRY_MS: u64 = 500;

/// Minimum interval between two records of the last use of a key. A finer resolution does not help
/// to find unused keys, and each record waits for the disk.
pub const USE_NOTE_MS: i64 = 60_000;

/// Expiry of the record of the last use: a year, with time to review it.
pub const USE_KEPT_MS: u64 = 400 * 24 * 3_600_000;

/// Maximum number of characters in the name of a key: tables show it.
pub const NAME_CHARS: usize = 128;

/// Default maximum number of open requests of one caller, including streams and waits. Each holds a
/// connection, and the usual limit of a process is some thousand.
pub const OPEN_REQUESTS: usize = 1_000;

/// Default maximum number of open requests of all callers: the default number of connections.
pub const ALL_OPEN_REQUESTS: usize = 4_096;

/// Fraction of the open requests, of a caller and of all callers, that may be streams and waits:
/// three of four, so that a page with many streams can still send other requests.
pub const LASTING_PARTS: (usize, usize) = (3, 4);

/// Maximum number of open control plane requests of one caller, in addition to other requests.
pub const CONTROL_REQUESTS: usize = 32;

/// Maximum number of open control plane requests of all callers.
pub const ALL_CONTROL_REQUESTS: usize = 512;

/// Maximum number of bytes of all request bodies that are being read or processed. A lower limit
/// would reject requests that the memory of guests permits.
pub const ALL_BODY_BYTES: usize = 256 << 20;

/// Number of bodies of the maximum size that fit at least, if `server.body_limit` is large.
pub const LARGEST_BODIES: usize = 4;

/// Seconds in `Retry-After` for a caller with too many open requests. The time at which one of them
/// ends is unknown.
pub const OPEN_RETRY_SECONDS: u64 = 1;

/// Number of callers whose rate limits are kept before idle ones are removed.
pub const REMEMBERED: usize = 10_000;

/// Maximum number of bytes of a user name: an e-mail address has at most 254, and events store the
/// name.
pub const USER_BYTES: usize = 256;

/// Limits that an operator configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rate limit of a key that has none of its own; `None` for no limit.
    pub key_rate: Option<Rate>,
    /// Rate limit of an address for requests without a key; `None` for no limit.
    pub address_rate: Option<Rate>,
    /// Maximum number of open requests of one caller; see [`OPEN_REQUESTS`].
    pub open: usize,
    /// Maximum number of open requests of all callers; see [`ALL_OPEN_REQUESTS`].
    pub all_open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_rate: None,
            address_rate: None,
            open: OPEN_REQUESTS,
            all_open: ALL_OPEN_REQUESTS,
        }
    }
}

/// Returns the problem for an exhausted limit of the host.
pub fn full(what: &str) -> Problem {
    let detail = format!(
        "the host has reached its limit of {what}; retry after {OPEN_RETRY_SECONDS} s, or end some"
    );
    Problem::new(code::UNAVAILABLE, detail).retry_after(OPEN_RETRY_SECONDS)
}
