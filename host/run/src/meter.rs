//! The meter: how the host counts and divides the work that it does with data of others.
//!
//! Guests, apps, clients and services choose the data that the host parses, validates and keeps in
//! memory. The meter ensures that no data stops the host, and that any mix of work of one owner
//! leaves half of the time of the turns to another owner.
//!
//! # Whose work it is
//!
//! Each piece of work has one [`WorkOwner`]:
//!
//! * the caller of a run, for its supersteps, the calls and results of its guests, the completions
//!   that they get and the batches of its log;
//! * the key or the network of a request, for its body, its commands on a WebSocket, the calls of
//!   its web handler and the long events of its streams;
//! * the principal of a request, or else the app, for the input, the answers, the edit or the
//!   command that it contains, and for the batches that these write;
//! * the app, for its migrations, for its own streams and files, for the results of its reducers,
//!   and for supersteps that a projection or a replay executes again;
//! * an MCP server, for its messages.
//!
//! A completion counts for the run that asked for it, because all callers share the provider. All
//! callers share the connection to an MCP server as well, but the host parses a message before it
//! knows the call that the message belongs to. So a message counts for its server.
//!
//! One person can be several owners: a request without a key counts for its network, and the run
//! that it starts for its app, since the record of a run does not contain the network.
//!
//! # What is counted
//!
//! * **The size of a piece**, in steps, values or bytes. Each piece has a budget, and ends with
//!   `limit` when the budget is used up: `StepBudget` for validations, `ConditionBudget` for
//!   expressions, `ProjectionBudget` for all expressions of a projection,
//!   [`JsonBudget`](crate::json::bounded::JsonBudget) for parsing, and the call budget of a guest.
//!   These counts depend on the data alone, so a replay comes to the same results.
//! * **What an owner holds**: bytes, open requests, guest instances, places and memory of runs. An
//!   owner holds at most half of what other owners leave; see [`fair_share`](crate::fair_share) and
//!   [`shared_pool`](crate::shared_pool). The documentation of each resource says when more is
//!   allowed. The same holds for calls under way to a model provider, a database or an MCP server
//!   and for lookups of names, which wait for [`places`](crate::places).
//! * **The time of long work**. Pieces of long work take turns; see below. Time decides only the
//!   order of the pieces, never a result.
//!
//! # How turns are divided
//!
//! [`blocking`](crate::blocking) decides whether a piece of work is long. There are as many turns
//! as the machine has cores, and a piece holds one turn from its start to its end. A turn that
//! becomes free goes to the owner that holds the fewest turns. Of several such owners, it goes to
//! the one whose pieces have held turns for the shortest time. The pieces of one owner begin in the
//! order of arrival.
//!
//! The time of an owner counts only as long as other owners have work. An owner that comes, or
//! comes back, starts with at least the lowest time of the owners with work. So no owner saves up
//! time for later, and no owner is at a disadvantage for work that it did while turns were free.
//!
//! While an owner has pieces that wait, no other owner gets ahead of it by more than the time of
//! the longest piece on each turn and on one turn more. Such a lead is possible because a piece
//! cannot be interrupted: an owner that is alone may hold all turns when another one comes.
//!
//! # When work is given up
//!
//! Work is given up between pieces only. A piece that has begun ends by itself, since its budget is
//! limited. A piece that waits for its turn leaves the queue when its future is dropped: the client
//! has disconnected, the attempt has timed out, the guest was unwound. The validation of an outcome
//! also leaves the queue when the run is cancelled: the outcome is then lost, and the calls in the
//! journal are not. A superstep whose tasks have all finished waits for its turn and is applied,
//! also after a cancel: the load of the host must not decide about the state.
//!
//! # What takes no turn
//!
//! Short work runs in place. Planning a superstep and writing a response that is not a stream of
//! events cannot wait, so they take no turn; the number of tasks and the bytes of responses are
//! limited. A store that encodes batches in its writers has few writers, which take the batches in
//! the order of their arrival.
//! Guests have a meter of CPU time, and compilers and checks of SQL have places of their own.
//! Requests that read large states have turns of their own, which they hold until their responses
//! are complete; see [`reads`](crate::reads).

pub mod model_usage;
pub mod plugin_use;
pub(crate) mod turns;

use std::sync::Arc;

use wattle_graph::id::AppName;

use crate::caller_id::CallerId;

/// The owner for which a piece of work counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WorkOwner {
    /// A caller: who asked for the work, or else the app.
    Caller(CallerId),
    /// An MCP server, by its name.
    Server(Arc<str>),
}

impl From<CallerId> for WorkOwner {
    fn from(caller: CallerId) -> Self {
        Self::Caller(caller)
    }
}

/// The owner of work of an app that no caller requested.
impl From<&AppName> for WorkOwner {
    fn from(app: &AppName) -> Self {
        Self::Caller(CallerId::of_app(app))
    }
}
