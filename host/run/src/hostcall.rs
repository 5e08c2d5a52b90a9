//! Every host call a guest can make: request, answer, and how safe it is to repeat.
//!
//! The types mirror `wit/wattle`, in a form that serializes, since requests and answers are
//! journaled.

pub mod blob;
pub mod bytes;
pub mod clock;
pub mod elicit;
pub mod emit;
pub mod http;
pub mod image;
pub mod interrupt;
pub mod llm;
pub mod memory;
pub(crate) mod replace;
pub(crate) mod request;
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

/// What happens when a call was begun and the host died before its answer was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It changes nothing outside, or the service sees that it is the same call.
    Safe,
    /// It may have had its effect: nobody can know without help.
    InDoubt,
}

/// A host call, as data. The gate performs it: see [`Effect`](crate::gate::Effect).
pub trait HostCall: Serialize + Send + Sync {
    /// What the guest gets.
    type Answer: Serialize + DeserializeOwned + Send;

    /// Interface and function, such as `llm.complete`.
    const FUNCTION: &'static str;

    /// Whether to log its start as an event of its own: for calls that a person waits for.
    const SLOW: bool = false;

    /// Whether that event has the request with it.
    const TELLS_REQUEST: bool = false;

    /// Whether it may be made again after a crash.
    fn repeat(&self) -> Repeat {
        Repeat::Safe
    }

    /// One line for people; no secrets, no long texts.
    fn summary(&self) -> String;

    /// The call as the journal shows it, if that is not all of it: its digest is still that of the
    /// whole.
    fn shown(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Checks that the grants allow it, before anything else happens.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add to the configuration.
    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure>;

    /// Whether it asks a model for a document for programs rather than for words.
    fn is_document(&self) -> bool {
        false
    }

    /// Bytes of the blob that it puts, if it puts one.
    fn blob_bytes(&self) -> u64 {
        0
    }

    /// Tokens that the answer used, for model calls.
    fn tokens(_answer: &Self::Answer) -> Option<Tokens> {
        None
    }

    /// Gives an answer the id of the message that it becomes, if it becomes one.
    fn name(_answer: &mut Self::Answer, _id: String) {}

    /// An answer as the pieces that it would have arrived in, if it was not asked for anew.
    fn pieces(_answer: &Self::Answer) -> Vec<Delta> {
        Vec::new()
    }
}
