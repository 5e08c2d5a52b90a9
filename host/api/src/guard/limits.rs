//! Limits for callers.

use wattle_graph::failure::code;
use wattle_run::limit::JSON_VALUES_BYTES;
use wattle_run::memory_budget::DEFAULT_BUDGET;

use crate::guard::rate::Rate;
use crate::problem::Problem;

/// Maximum number of created keys. Every few seconds a host reads all of them as one page of the
/// memory. The limit leaves room in the page for keys that several hosts of a database create at
/// the same time.
pub const MAX_KEYS: usize = wattle_run::limit::MEMORY_RESULTS * 9 / 10;

/// Number of keys at which a tenant can no longer create keys itself. The limit prevents one tenant
/// from using up [`MAX_KEYS`].
pub const MAX_TENANT_KEYS: usize = 100;

/// Maximum number of ancestors of a key. The record of a key lists all its ancestors, so that the
/// revocation of a leaked key finds all descendants. Real chains are much shorter.
pub const MAX_KEY_ANCESTORS: usize = 16;

/// Lifetime of the cached keys. Within this time, a host can still accept a key that another host
/// of the database revoked, and reject a key that another host created.
pub const KEY_CACHE_TTL_MS: u64 = 2_000;

/// Minimum delay between a failed read of the keys and the next read.
pub const KEY_RELOAD_RETRY_MS: u64 = 500;

/// Minimum interval between two recorded uses of a key. A finer resolution does not help to find
/// unused keys, and each record costs a write to the disk.
pub const KEY_USE_INTERVAL_MS: i64 = 60_000;

/// Expiry of a recorded use: one year, and some weeks for a review of unused keys.
pub const KEY_USE_TTL_MS: u64 = 400 * 24 * 3_600_000;

/// Maximum length of the name of a key in characters. Names are shown in tables.
pub const MAX_KEY_NAME_CHARS: usize = 128;

/// Default maximum number of open requests of one caller, including streams and waits. Each request
/// occupies a connection, and a process usually has a few thousand of them.
pub const DEFAULT_OPEN_REQUESTS: usize = 1_000;

/// Default maximum number of open requests of all callers, equal to the default number of
/// connections.
pub const DEFAULT_ALL_OPEN_REQUESTS: usize = 4_096;

/// Fraction of the open requests that may be streams and waits, per caller and for all callers:
/// three of four. A page with many streams can still send other requests.
pub const LASTING_FRACTION: (usize, usize) = (3, 4);

/// Maximum number of open control plane requests of one caller, in addition to other requests.
pub const MAX_CONTROL_REQUESTS: usize = 32;

/// Maximum number of open control plane requests of all callers.
pub const MAX_ALL_CONTROL_REQUESTS: usize = 512;

/// Default maximum number of bytes of all request bodies in memory.
pub const ALL_BODY_BYTES: usize = DEFAULT_BUDGET.bodies_bytes as usize;

/// Minimum number of bodies of the maximum size, each with its values, that fit in memory together.
/// Applies if `server.body_limit` is large, or if the machine is small. One caller holds at most
/// half, so with two of them each body that the limits permit fits.
pub const MIN_LARGEST_BODIES: usize = 2;

/// Maximum size of a component that a request installs, in bytes. It equals the limit of the
/// components that the host loads, and `server.body_limit` does not apply: components that contain
/// an interpreter are larger than any other body.
pub const INSTALL_BYTES: usize = 64 << 20;

/// Factor by which `server.body_limit` is multiplied. The product limits the memory that the values
/// of one body may take, if the product is more than
/// [`JSON_VALUES_BYTES`].
pub const BODY_VALUES_FACTOR: u64 = 4;

/// Default maximum number of bytes of all responses that are not sent yet: complete responses,
/// frames of streams, and messages of WebSockets. A caller that reads nothing keeps its responses
/// in memory until the connection is closed.
pub const DEFAULT_RESPONSE_BYTES: usize = DEFAULT_BUDGET.responses_bytes as usize;

/// Minimum value of [`Limits::response_bytes`]. With a lower value, a few open requests would
/// reserve all of these bytes.
pub const MIN_RESPONSE_BYTES: u64 = 1 << 20;

/// Minimum number of responses with a state of the maximum size that fit in memory together.
/// Applies if `limits.state_bytes` is large, or if the machine is small. One caller holds at most
/// half.
pub const MIN_LARGEST_RESPONSES: u64 = 2;

/// Number of bytes that each open request reserves for its response. Most responses are smaller, so
/// a request that was carried out does not lose its response. If these bytes are not available, the
/// request is rejected before it does anything.
pub const RESPONSE_RESERVE_BYTES: usize = 16 << 10;

/// Seconds in `Retry-After` for a caller with too many open requests. The host cannot predict when
/// an open request ends.
pub const RETRY_AFTER_SECONDS: u64 = 1;

/// Number of tracked callers above which the rate limiter removes idle callers.
pub const MAX_TRACKED_CALLERS: usize = 10_000;

/// Maximum number of bytes of a user name: an e-mail address has at most 254, and events store the
/// name.
pub const MAX_USER_BYTES: usize = 256;

/// Limits that an operator configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rate limit of a key without its own limit; `None` for no limit.
    pub key_rate: Option<Rate>,
    /// Rate limit of an IP address for requests without a key; `None` for no limit.
    pub address_rate: Option<Rate>,
    /// Maximum number of open requests of one caller; see [`DEFAULT_OPEN_REQUESTS`].
    pub open: usize,
    /// Maximum number of open requests of all callers; see [`DEFAULT_ALL_OPEN_REQUESTS`].
    pub all_open: usize,
    /// Maximum number of bytes of all request bodies in memory, if [`MIN_LARGEST_BODIES`] permits;
    /// see [`ALL_BODY_BYTES`].
    pub body_bytes: usize,
    /// Maximum number of bytes of all responses that are not sent yet; see
    /// [`DEFAULT_RESPONSE_BYTES`].
    pub response_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_rate: None,
            address_rate: None,
            open: DEFAULT_OPEN_REQUESTS,
            all_open: DEFAULT_ALL_OPEN_REQUESTS,
            body_bytes: ALL_BODY_BYTES,
            response_bytes: DEFAULT_RESPONSE_BYTES,
        }
    }
}

/// Returns the maximum memory of the parsed values of a body of at most `limit_bytes` bytes, in
/// bytes.
pub(crate) fn max_body_values_bytes(limit_bytes: usize) -> u64 {
    (limit_bytes as u64).saturating_mul(BODY_VALUES_FACTOR).max(JSON_VALUES_BYTES)
}

/// Returns the problem for a host limit that was reached. `what` names the limited resource.
pub fn limit_reached(what: &str) -> Problem {
    let detail = format!(
        "the host has reached its limit of {what}; retry after {RETRY_AFTER_SECONDS} s, or end \
         some connections or requests"
    );
    Problem::new(code::UNAVAILABLE, detail).with_retry_after(RETRY_AFTER_SECONDS)
}
