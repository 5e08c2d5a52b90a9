//! What callers may take of the host, in one place.

use crate::guard::rate::Rate;

/// Keys that are made at most. All of them are read at once, every few seconds; so many fit one
/// answer of the memory, with room for hosts of one database that make some at the same time.
pub const KEYS: usize = wattle_run::limit::MEMORY_RESULTS * 9 / 10;

/// Keys that the keys of one tenant make at most, so that none uses up those of all.
pub const TENANT_KEYS: usize = 100;

/// Keys of the chain by which a key came to be at most. All of them are kept with it, so that none
/// escapes who revokes what came to be by a leaked one; nobody hands keys on so often.
pub const MAKERS: usize = 16;

/// How long a host goes by what it read of the keys. A key that another host of the same database
/// revoked still opens this one for so long at most, and one that it made opens it after so long.
pub const KEYS_LIFE_MS: u64 = 2_000;

/// Least time between two notes of when a key was last used: an operator who looks for keys that
/// nobody needs does not care for more, and a write waits for the disk.
pub const USE_NOTE_MS: i64 = 60_000;

/// How long such a note is kept: a year, and some time to look at it.
pub const USE_KEPT_MS: u64 = 400 * 24 * 3_600_000;

/// Characters of a key's name: it stands in tables.
pub const NAME_CHARS: usize = 128;

/// Requests that one caller may have open at once unless configured, streams and waits among them:
/// each holds a connection, and a process mostly has some thousand.
pub const OPEN_REQUESTS: usize = 1_000;

/// How long a caller with too many open requests is told to wait. Nobody knows when one ends.
pub const OPEN_RETRY_SECONDS: u64 = 1;

/// Callers whose counts are remembered before those that were quiet are forgotten.
pub const REMEMBERED: usize = 10_000;

/// What an operator decides of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often one key may ask that has no rate of its own; as often as it likes without it.
    pub key_rate: Option<Rate>,
    /// How often one address may ask without a key; as often as it likes without it.
    pub address_rate: Option<Rate>,
    /// Requests that one caller may have open at once; see [`OPEN_REQUESTS`].
    pub open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { key_rate: None, address_rate: None, open: OPEN_REQUESTS }
    }
}
