//! Host calls: request, output, grant check and idempotency of every call that a guest can make.
//!
//! The types mirror `wit/wattle`. The types can be serialized, since requests and outputs are
//! journaled.

pub mod blob;
pub mod bytes_serde;
pub mod clock;
pub mod elicit;
pub mod emit;
pub mod http;
pub mod image;
pub mod interrupt;
pub mod llm;
pub mod log;
pub mod memory;
pub(crate) mod request;
pub(crate) mod result_override;
pub mod runs;
pub mod sql;
pub(crate) mod stream;
pub mod tools;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wattle_graph::event::Tokens;
use wattle_graph::failure::Failure;
use wattle_graph::llm::Delta;

use crate::grant::Grants;
use crate::ports::Caller;

/// Whether a call may be repeated after the host stopped before its result was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// Idempotent: the call changes nothing outside, or the service recognizes a repeated call.
    Idempotent,
    /// Not idempotent: after such a stop, the call is in doubt, because it may have taken effect.
    NotIdempotent,
}

/// A host call as data. The gate performs it: see [`Effect`](crate::gate::Effect).
pub trait HostCall: Serialize + Send + Sync {
    /// The output that the guest receives.
    type Output: Serialize + DeserializeOwned + Send;

    /// Interface and function, such as `llm.complete`.
    const FUNCTION: &'static str;

    /// True if the start of the call is logged as an event of its own: for calls that a person
    /// waits for.
    const LOGS_START: bool = false;

    /// True if the event of the start includes the request.
    const START_INCLUDES_REQUEST: bool = false;

    /// Returns whether the call may be repeated after a crash. The default is
    /// [`Idempotency::Idempotent`].
    fn idempotency(&self) -> Idempotency {
        Idempotency::Idempotent
    }

    /// Returns a one-line description for people, without secrets and long strings.
    fn summary(&self) -> String;

    /// Returns the length of what the request refers to and its serialized form does not have, in
    /// bytes.
    fn referenced_bytes(&self) -> u64 {
        0
    }

    /// Returns the call with what its request refers to, if the journal stores the request in this
    /// form. The gate then performs the returned call. The digest covers the original request.
    fn resolved(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the request as the journal stores it, or `None` if the journal stores the whole
    /// request. The digest covers the whole request in any case.
    fn journaled_request(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Checks that the grants and the limits of a request allow the call, before anything else
    /// happens.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add to the configuration; `limit` if the request is too large.
    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure>;

    /// Returns true if the call asks a model for structured output, which is meant for programs.
    fn is_structured_output(&self) -> bool {
        false
    }

    /// Returns the size of the blob that the call stores; 0 without one.
    fn blob_bytes(&self) -> u64 {
        0
    }

    /// Returns the tokens that a model call used.
    fn tokens(_answer: &Self::Output) -> Option<Tokens> {
        None
    }

    /// Sets the id of the message that the output becomes, if it becomes one.
    fn set_message_id(_answer: &mut Self::Output, _id: String) {}

    /// Returns the output as the deltas of a stream.
    fn deltas(_answer: &Self::Output) -> Vec<Delta> {
        Vec::new()
    }
}
