//! Resources that guests hold by handle. They are public because the generated bindings re-export
//! them.

use std::sync::Arc;

use wattle_graph::llm::History;
use wattle_run::gate::stream::CompletionStream;
use wattle_run::gate::transaction::Transaction;

/// A guest's handle of a stream. Dropping it cancels the model call.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct StreamHandle {
    /// The stream.
    pub(crate) stream: CompletionStream,
    /// The history of the request.
    pub(crate) history: Option<Arc<History>>,
}

/// A guest's handle of a transaction; `None` once the transaction has ended.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct TransactionHandle(pub(crate) Option<Transaction>);
