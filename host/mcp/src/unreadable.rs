//! Messages of servers that the host cannot read, because they exceed a limit.

use wattle_run::json::bounded::JsonLimit;
use wattle_run::service_memory::ServicesFull;

/// The limit that a message of a server exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageLimit {
    /// The message has more than this number of bytes.
    #[error("it has more than {0} bytes")]
    Bytes(usize),
    #[error(transparent)]
    Json(#[from] JsonLimit),
    /// The message does not get memory.
    #[error(transparent)]
    Memory(#[from] ServicesFull),
}

/// A message that ended the session of a stdio server. It may be the response to any request in
/// progress, since the host has not read its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreadableMessage {
    pub(crate) limit: MessageLimit,
    pub(crate) response_to: ResponseTo,
}

/// The request to which a message responds whose id the host has not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseTo {
    /// The only call. No list was in progress, and the server has answered all earlier requests.
    OnlyCall,
    /// A request that is not a call. The server has answered all calls.
    OtherRequest,
    /// One of several requests.
    Unknown,
}
