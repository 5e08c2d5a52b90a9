//! What callers may take of the host, in one place.

use wattle_graph::failure::code;

use crate::guard::rate::Rate;
use crate::problem::Problem;

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

/// How long a host does not try again to read the keys after that failed.
pub const KEYS_RETRY_MS: u64 = 500;

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

/// Requests that all callers may have open at once unless configured: as many as connections.
pub const ALL_OPEN_REQUESTS: usize = 4_096;

/// Part of the open requests, of a caller and of all, that may be streams and waits: three in four, so
/// that a page with many streams can still ask for something else.
pub const LASTING_PARTS: (usize, usize) = (3, 4);

/// Requests of the control plane that one caller may have open at once, beside all others.
pub const CONTROL_REQUESTS: usize = 32;

/// The same for all callers.
pub const ALL_CONTROL_REQUESTS: usize = 512;

/// Bytes of the bodies of all requests that are being read or worked on. A host with less memory for
/// them than for guests would refuse what its guests could do.
pub const ALL_BODY_BYTES: usize = 256 << 20;

/// Largest bodies that fit into that at least, where `server.body_limit` is large.
pub const LARGEST_BODIES: usize = 4;

/// Seconds in `Retry-After` for a caller with too many open requests. Nobody knows when one ends.
pub const OPEN_RETRY_SECONDS: u64 = 1;

/// Callers whose counts are remembered before those that were quiet are forgotten.
pub const REMEMBERED: usize = 10_000;

/// Bytes of the name of a user: an address of e-mail has 254 at most, and the name is kept in events.
pub const USER_BYTES: usize = 256;

/// What an operator decides of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often one key may ask that has no rate of its own; as often as it likes without it.
    pub key_rate: Option<Rate>,
    /// How often one address may ask without a key; as often as it likes without it.
    pub address_rate: Option<Rate>,
    /// Requests that one caller may have open at once; see [`OPEN_REQUESTS`].
    pub open: usize,
    /// Requests that all callers may have open at once; see [`ALL_OPEN_REQUESTS`].
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

/// The refusal where all of something is taken.
pub fn full(what: &str) -> Problem {
    let detail = format!(
        "the host has as many {what} as it may have; try again in {OPEN_RETRY_SECONDS} s, or end some"
    );
    Problem::new(code::UNAVAILABLE, detail).retry_after(OPEN_RETRY_SECONDS)
}
